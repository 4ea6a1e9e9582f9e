// From what the form says to the call that a caller would write.

/** The turns of a text with a turn a line, `Speaker: text`. A line without a speaker goes on with the turn before it. */
export function turns(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = /^\s*([^:\n]{1,80}):\s*(.*)$/.exec(line);
    if (match) found.push({ speaker: match[1].trim(), text: match[2].trim() });
    else if (line.trim() !== "" && found.length > 0) found.at(-1).text += `\n${line.trim()}`;
    else if (line.trim() !== "") found.push({ speaker: "User", text: line.trim() });
  }
  return found;
}

/** The route and its body. */
export function requests({ who, dialogue, context, replies, turns, agent }) {
  if (dialogue) return { path: "v1/score_dialogue", body: { ...who, turns, agent } };
  const candidates = replies.map((response, index) => ({ id: String(index + 1), response }));
  return { path: "v1/score_group", body: { ...who, context, candidates } };
}

/** The call for a shell. The key is named, never shown. */
export function curl(url, body, withKey) {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  const key = withKey ? ' -H "authorization: Bearer $PRISM_JUDGE_API_KEY"' : "";
  return `curl ${url} -H 'content-type: application/json'${key} -d '${quoted}'`;
}

/** The call for Python, with the client of clients/python. A string of JSON is one of Python too. */
export function python(origin, path, body, withKey) {
  const quoted = (text) => JSON.stringify(text);
  const persona = () => {
    const fields = Object.entries(body.persona).map(([name, value]) => `${name}=${quoted(value)}`);
    return `persona=Persona(${fields.join(", ")})`;
  };
  const list = (name, items) => `${name}[${items.length === 0 ? "" : `\n        ${items.join(",\n        ")},\n    `}]`;
  const pairs = (turns) => turns.map(({ speaker, text }) => `(${quoted(speaker)}, ${quoted(text)})`);
  const who = body.persona_id === undefined ? persona() : `persona_id=${quoted(body.persona_id)}`;
  const key = withKey ? ', api_key=os.environ["PRISM_JUDGE_API_KEY"]' : "";
  const head = `${withKey ? "import os\n\n" : ""}from prism_judge import Client${body.persona === undefined ? "" : ", Persona"}

judge = Client(${quoted(origin)}${key})
`;
  if (path === "v1/score_dialogue") {
    return `${head}dialogue = judge.score_dialogue(
    ${list("", pairs(body.turns))},
    ${who},
    agent=${quoted(body.agent)},
)
print(dialogue.drift)
`;
  }
  return `${head}results = judge.score_group(
    ${list("", body.candidates.map(({ response }) => quoted(response)))},
    ${who},
    ${list("context=", pairs(body.context))},
)
for result in results:
    print(result)
`;
}
