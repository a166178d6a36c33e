// A guardrail's service: masks the names of projects that nobody outside may hear of, and blocks what speaks of a merger.
// Start it with: PORT=8080 GUARD_TOKEN=… node server.mjs
import { createServer } from "node:http";
import { env } from "node:process";

const { PORT = "8080", GUARD_TOKEN = "" } = env;
const projects = /\bproject (?:bluebird|heron)\b/gi;

function verdictOf(texts) {
  if (texts.some((text) => /\bmerger\b/i.test(text))) return { action: "block" };
  const masked = texts.map((text) => text.replace(projects, "[project]"));
  return masked.some((text, index) => text !== texts[index]) ? { action: "mask", texts: masked } : { action: "pass" };
}

const server = createServer(async (request, response) => {
  if (request.headers.authorization !== `Bearer ${GUARD_TOKEN}`) {
    response.writeHead(401).end();
    return;
  }
  let body = "";
  for await (const piece of request.setEncoding("utf8")) body += piece;
  const { texts } = JSON.parse(body);
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(verdictOf(texts)));
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(server.address().port));
