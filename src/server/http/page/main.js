// The page at `/`: asks the HTTP routes that every other caller uses, and shows what they answer.

import { curl, python, requests, turns } from "./calls.js";
import { drift, errorText, verdicts } from "./show.js";

const $ = (id) => document.getElementById(id);

/** The last call: what was sent, and what came back. */
let last = null;

/** Makes a row of tabs work with the arrow keys, as screen readers expect. */
function tabs(list, chosen) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const choose = (tab) => {
    for (const other of all) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
    }
    chosen(tab);
  };
  for (const tab of all) tab.addEventListener("click", () => choose(tab));
  list.addEventListener("keydown", (event) => {
    const at = all.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = all[(to + all.length) % all.length];
    tab.focus();
    choose(tab);
  });
}

function addCandidate(text = "") {
  const item = document.createElement("li");
  item.innerHTML =
    '<div class="head"><label></label><button type="button">Remove</button></div><textarea rows="2"></textarea>';
  const [label, area, remove] = ["label", "textarea", "button"].map((name) => item.querySelector(name));
  area.value = text;
  area.id = `reply-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
  label.htmlFor = area.id;
  remove.addEventListener("click", () => {
    item.remove();
    number();
    $("add").focus();
  });
  $("candidates").append(item);
  number();
  return area;
}

function number() {
  [...$("candidates").children].forEach((item, index) => {
    item.querySelector("label").textContent = `Reply ${index + 1}`;
    item.querySelector("button").setAttribute("aria-label", `Remove reply ${index + 1}`);
  });
}

function headers() {
  const key = $("key").value.trim();
  return key === "" ? {} : { authorization: `Bearer ${key}` };
}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, {
    ...options,
    headers: { ...headers(), ...(body === undefined ? {} : { "content-type": "application/json" }) },
  });
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error(`the answer (HTTP ${response.status}) is not JSON: ${text.slice(0, 200)}`);
  }
  if (!response.ok) throw new Error(errorText(response.status, answer));
  return answer;
}

/** What the form says, as the routes want it. */
function form() {
  const id = $("persona-id").value;
  const name = $("name").value.trim();
  const inline = { ...(name === "" ? {} : { name }), description: $("description").value };
  return {
    who: id === "" ? { persona: inline } : { persona_id: id },
    dialogue: !$("dialogue").hidden,
    context: turns($("context").value),
    replies: [...$("candidates").querySelectorAll("textarea")].map((area) => area.value),
    turns: turns($("turns").value),
    agent: $("agent").value.trim(),
  };
}

async function judge() {
  const asked = form();
  const { path, body } = requests(asked);
  const started = performance.now();
  const tick = () => {
    $("progress").textContent = `Judging … ${Math.round((performance.now() - started) / 1000)} s`;
  };
  tick();
  const timer = setInterval(tick, 1000);
  $("submit").disabled = true;
  $("error").hidden = true;
  last = { path, body, answer: null };
  try {
    last.answer = await ask(path, body);
    $("progress").textContent = `Judged in ${((performance.now() - started) / 1000).toFixed(2)} s`;
    $("verdicts").replaceChildren(...(asked.dialogue ? drift(last.answer, body.turns) : verdicts(last.answer, asked.replies)));
  } catch (error) {
    $("progress").textContent = "";
    $("verdicts").replaceChildren();
    $("error").textContent = error.message;
    $("error").hidden = false;
  } finally {
    clearInterval(timer);
    $("submit").disabled = false;
    $("call").hidden = false;
    showCode();
  }
}

function showCode() {
  const tab = $("call").querySelector('[aria-selected="true"]');
  const { path, body, answer } = last;
  const url = new URL(path, location.href).href;
  const withKey = $("key").value.trim() !== "";
  const code = {
    "tab-json": () => JSON.stringify(body, null, 2),
    "tab-curl": () => curl(url, body, withKey),
    "tab-python": () => python(location.origin, path, body, withKey),
    "tab-answer": () => (answer === null ? "none: the call failed" : JSON.stringify(answer, null, 2)),
  };
  $("code").textContent = code[tab.id]();
  $("code").setAttribute("aria-labelledby", tab.id);
  $("copied").textContent = "";
}

async function introduce() {
  try {
    const info = await ask("v1/info");
    $("judge").textContent = `${info.model}, version ${info.version}, evidence: ${info.options.evidence.replace("EVIDENCE_KIND_", "").replace("_", " ").toLowerCase()}`;
    const { personas } = await ask("v1/personas");
    for (const persona of personas.slice().reverse()) {
      const option = new Option(persona.name === "" ? persona.id : `${persona.name} (${persona.id})`, persona.id);
      $("persona-id").options[0].after(option);
    }
  } catch (error) {
    $("judge").textContent = `The judge did not say who it is: ${error.message}`;
  }
}

tabs($("tab-replies").parentElement, (tab) => {
  for (const id of ["replies", "dialogue"]) $(id).hidden = `tab-${id}` !== tab.id;
});
tabs($("tab-json").parentElement, showCode);
$("add").addEventListener("click", () => addCandidate().focus());
$("persona-id").addEventListener("change", (event) => {
  $("inline-persona").hidden = event.target.value !== "";
});
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  judge();
});
$("key").addEventListener("change", introduce);
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("code").textContent);
    $("copied").textContent = "Copied";
  } catch {
    $("copied").textContent = "This browser does not let the page copy: select the text instead";
  }
});
addCandidate("Yes! Who else is in? I will bring cake for everybody, and we have to ask the neighbours too!");
addCandidate("Thank you, but I would rather stay in and read. Crowds tire me.");
addCandidate("The lake is open to the public on Sundays.");
introduce();
