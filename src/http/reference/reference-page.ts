// Renders the OpenAPI document as one searchable HTML page, which loads nothing from other hosts.
import { createHash } from "node:crypto";
import { type OpenApiDocument, type OpenApiOperation, resolved } from "./openapi.ts";

type Json = Record<string, unknown>;

export function referencePage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0] ?? ""))];
  const nav = tags
    .map(
      (tag) =>
        `<h2>${escapeHtml(tag)}</h2><ul>${operations
          .filter(({ operation }) => operation.tags[0] === tag)
          .map(
            ({ operation, method, path }) =>
              `<li><a href="#${operation.operationId}"><b>${method}</b> ${escapeHtml(path)}</a></li>`,
          )
          .join("")}</ul>`,
    )
    .join("");
  const sections = operations.map(({ path, method, operation }) => section(path, method, operation, document)).join("");
  const schemas = Object.entries(document.components.schemas)
    .map(
      ([name, schema]) =>
        `<section id="schema-${name}"><h3>${escapeHtml(name)}</h3>${schemaTable(schema, document, name)}</section>`,
    )
    .join("");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(document.info.title)} API reference</title><style>${style}</style></head>
<body><div class="side"><p class="brand">${escapeHtml(document.info.title)}</p><p><a href="/settings">Sign in, and your settings</a></p>
<p class="find"><label for="find">Find an endpoint</label><input id="find" type="search" autocomplete="off" placeholder="keys, /v1/usage, quota"><span id="found" role="status"></span></p>
<details id="list"><summary>All ${operations.length} endpoints</summary><nav aria-label="Endpoints">${nav}<h2>More</h2><ul><li><a href="#schemas">Schemas</a></li><li><a href="/openapi.json">OpenAPI 3.1</a></li></ul></nav></details></div>
<script>${script}</script>
<main><h1>API reference</h1><p>${prose(document.info.description)}</p><p>Version ${escapeHtml(document.info.version)}</p>
${sections}<h2 id="schemas">Schemas</h2>${schemas}</main></body></html>`;
}

function section(path: string, method: string, operation: OpenApiOperation, document: OpenApiDocument): string {
  const request = jsonSchema(operation.requestBody);
  const open = operation.security.length === 0;
  const answers = Object.entries(operation.responses)
    .map(([status, response]) => {
      const { description, content = {} } = resolved(response, document);
      const kinds = Object.entries(content as Record<string, Json>)
        .map(
          ([type, media]) =>
            `<code>${type}</code>${media["schema"] ? ` ${typeName(media["schema"] as Json, document)}` : ""}`,
        )
        .join("<br>");
      return `<tr><td><code>${status}</code></td><td>${prose(String(description))}</td><td>${kinds}</td></tr>`;
    })
    .join("");
  return `<section id="${operation.operationId}"><h2><span class="method">${method}</span> ${escapeHtml(path)}</h2>
<p><strong>${escapeHtml(operation.summary)}.</strong> ${operation.description ? prose(operation.description) : ""}</p>
<p>${open ? "Needs no credentials." : "Needs an API key: <code>Authorization: Bearer &lt;API_KEY&gt;</code>, <code>X-API-Key: &lt;API_KEY&gt;</code> or <code>api-key: &lt;API_KEY&gt;</code>."}</p>
${example(path, operation)}${request ? `<h3>Request body</h3>${schemaTable(request, document, `the body of ${method} ${path}`)}` : ""}
<h3>Answers</h3><div ${scrolling(`Answers of ${method} ${path}`)}><table class="answers"><thead><tr><th>Status</th><th>When</th><th>Body</th></tr></thead><tbody>${answers}</tbody></table></div></section>`;
}

function example(path: string, operation: OpenApiOperation): string {
  const body = mediaOf(operation.requestBody)?.["example"];
  if (body === undefined) return "";
  const command = [
    // The example uses the environment variables of OpenAI's SDKs, because the base URL that the client uses is not
    // known here.
    `curl "$OPENAI_BASE_URL${path.replace(/^\/v1/, "")}" \\`,
    '  -H "Authorization: Bearer $OPENAI_API_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '${JSON.stringify(body)}'`,
  ];
  return `<h3>Example</h3><pre tabindex="0" role="region" aria-label="Example of ${escapeHtml(path)}"><code>${escapeHtml(command.join("\n"))}</code></pre>`;
}

function jsonSchema(requestBody: Json | undefined): Json | undefined {
  return mediaOf(requestBody)?.["schema"] as Json | undefined;
}

function mediaOf(requestBody: Json | undefined): Json | undefined {
  return (requestBody?.["content"] as Record<string, Json> | undefined)?.["application/json"];
}

/** Renders the members of a schema as a table. `of` names the object that the members belong to, for screen readers. */
function schemaTable(schema: Json, document: OpenApiDocument, of: string): string {
  const target = resolved(schema, document);
  const properties = target["properties"] as Record<string, Json> | undefined;
  if (!properties) return `<p>${typeName(target, document)}</p>`;
  const required = new Set(target["required"] as string[] | undefined);
  const rows = Object.entries(properties)
    .map(
      ([name, property]) =>
        `<tr><td><code>${escapeHtml(name)}</code>${required.has(name) ? " <em>required</em>" : ""}</td><td>${typeName(property, document)}</td><td>${prose(String(property["description"] ?? ""))}</td></tr>`,
    )
    .join("");
  return `<div ${scrolling(`Fields of ${of}`)}><table class="fields"><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function typeName(schema: Json, document: OpenApiDocument): string {
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    return `<a href="#schema-${name}">${escapeHtml(name)}</a>`;
  }
  const choices = (schema["anyOf"] ?? schema["oneOf"]) as Json[] | undefined;
  if (choices) {
    const names = choices.filter((choice) => choice["type"] !== "null").map((choice) => typeName(choice, document));
    return [...new Set(names)].join(" or ");
  }
  if (schema["const"] !== undefined) return `<code>${escapeHtml(JSON.stringify(schema["const"]))}</code>`;
  const values = schema["enum"] as unknown[] | undefined;
  if (values) return values.map((value) => `<code>${escapeHtml(JSON.stringify(value))}</code>`).join(", ");
  const types = ([] as unknown[]).concat(schema["type"] ?? "any").filter((type) => type !== "null");
  const text = escapeHtml(types.join(" or "));
  if (types[0] === "array")
    return `array of ${schema["items"] ? typeName(schema["items"] as Json, document) : "anything"}`;
  if (types[0] === "object" && schema["properties"]) {
    const names = Object.keys(schema["properties"] as object).map((name) => `<code>${escapeHtml(name)}</code>`);
    return `object with ${names.join(", ")}`;
  }
  return text + bounds(schema);
}

function bounds(schema: Json): string {
  const { minimum, maximum, exclusiveMinimum } = schema;
  const parts: string[] = [];
  if (typeof exclusiveMinimum === "number") parts.push(`above ${exclusiveMinimum}`);
  if (typeof minimum === "number" && minimum > Number.MIN_SAFE_INTEGER) parts.push(`from ${minimum}`);
  if (typeof maximum === "number" && maximum < Number.MAX_SAFE_INTEGER) parts.push(`to ${maximum}`);
  return parts.length > 0 ? ` ${parts.join(" ")}` : "";
}

/** Renders a description as HTML: text in backticks as code, and blank lines as line breaks. */
function prose(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replace(/\n\n/g, "<br>");
}

/**
 * Returns attributes for content that may be wider than the page. The content scrolls separately, also with the
 * keyboard.
 */
function scrolling(label: string): string {
  return `class="wide" tabindex="0" role="region" aria-label="${escapeHtml(label)}"`;
}

function escapeHtml(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

const style = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--link:#0a58ca;--tag:#0a6c4f}
@media(prefers-color-scheme:dark){:root{--link:#7ab2ff;--tag:#5fd3a8}}
*{box-sizing:border-box}body{margin:0;font:16px/1.55 system-ui,sans-serif;display:grid;grid-template-columns:19rem minmax(0,1fr)}
.side{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem;border-right:1px solid var(--line);font-size:.9rem}
summary{cursor:pointer;font-weight:600;padding:.3rem 0}.find label{display:block;font-weight:600}.find input{font:inherit;width:100%;padding:.4rem .6rem;border:1px solid #888;border-radius:.4rem;background:transparent;color:inherit}[hidden]{display:none}@media(scripting:none){.find{display:none}}
nav h2{font-size:.8rem;text-transform:uppercase;letter-spacing:.05em;margin:1.2rem 0 .3rem}nav ul{list-style:none;margin:0;padding:0}nav li{padding:.15rem 0;overflow-wrap:anywhere}
.brand{font-weight:700;font-size:1.2rem;margin:0}main{padding:1.5rem 2.5rem 4rem;max-width:64rem}
section{margin-top:2.5rem;scroll-margin-top:1rem}section:nth-of-type(n+4){content-visibility:auto;contain-intrinsic-size:auto 40rem}h2{font-size:1.25rem}section>h2{border-bottom:1px solid var(--line);padding-bottom:.4rem;overflow-wrap:anywhere}
.method,nav b{color:var(--tag);font:600 .85em ui-monospace,monospace}a{color:var(--link)}em{font-size:.85em}
code{font:.9em ui-monospace,monospace;background:var(--soft);padding:.1em .3em;border-radius:.25em;overflow-wrap:anywhere}
pre{background:var(--soft);padding:.8rem 1rem;border-radius:.4rem;overflow-x:auto}pre code{background:none;padding:0}
.wide{overflow-x:auto}table{border-collapse:collapse;table-layout:fixed;width:100%;min-width:42rem;font-size:.92rem}.fields th:first-child{width:28%}.fields th:nth-child(2){width:26%}.answers th:first-child{width:5rem}.answers th:last-child{width:34%}td{overflow-wrap:anywhere}th,td{text-align:left;vertical-align:top;padding:.45rem .6rem;border-bottom:1px solid var(--line)}
@media(max-width:48rem){body{display:block}.side{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line);padding:1rem}main{padding:1rem}}
`;

/**
 * The page's script. It opens the list of endpoints on a wide page, and filters the endpoints by the words that the
 * reader types.
 */
const script = `
const list=document.getElementById("list"),field=document.getElementById("find"),found=document.getElementById("found");
if(matchMedia("(min-width:48.01rem)").matches)list.open=true;
let entries;
function read(){return [...list.querySelectorAll("nav a[href^='#']")].flatMap(function(link){const section=document.getElementById(link.hash.slice(1));if(!section||section.tagName!=="SECTION")return[];const text=[...section.querySelectorAll(":scope > h2, :scope > p")].map(function(part){return part.textContent}).join(" ");return[{item:link.parentElement,link:link,text:text.toLowerCase()}]})}
field.addEventListener("input",function(){
entries=entries||read();
const words=field.value.toLowerCase().split(" ").filter(Boolean);let count=0;
for(const entry of entries){const fits=words.every(function(word){return entry.text.includes(word)});entry.item.hidden=!fits;if(fits)count++}
for(const group of list.querySelectorAll("nav ul"))group.hidden=group.previousElementSibling.hidden=words.length>0&&![...group.children].some(function(item){return !item.hidden&&entries.some(function(entry){return entry.item===item})});
if(words.length>0)list.open=true;
found.textContent=words.length===0?"":count===0?"Nothing found":count+(count===1?" endpoint":" endpoints");
});
field.addEventListener("keydown",function(event){if(event.key!=="Enter"||!entries)return;const first=entries.find(function(entry){return !entry.item.hidden});if(first){location.hash=first.link.hash}});
`;

/** Hashes of the inline style and script, for the Content-Security-Policy. */
export const referenceStyleSource = sourceOf(style);
export const referenceScriptSource = sourceOf(script);

function sourceOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
