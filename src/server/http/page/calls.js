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

/** The call for Python. JSON is Python but for three words, which stand for themselves in no value of ours. */
export function python(origin, path, body, withKey) {
  const key = withKey ? ', api_key=os.environ["PRISM_JUDGE_API_KEY"]' : "";
  const method = path.replace("v1/", "");
  const named = Object.entries(body).map(([name, value]) => {
    const text = JSON.stringify(value, null, 2).replaceAll("\n", "\n    ");
    return `    ${name}=${text},\n`;
  });
  return `${withKey ? "import os\n\n" : ""}import prism_judge

judge = prism_judge.Client("${origin}"${key})
result = judge.${method}(
${named.join("")})
print(result)`;
}
