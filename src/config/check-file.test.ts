// What is wrong in headrace.yaml is told with its line and its fix, and never with a secret.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for variables.
import { describe, expect, test } from "bun:test";
import { checkFile } from "./check-file.ts";
import { renderProblem } from "./problems.ts";
import { readYaml } from "./read-yaml.ts";

const secretText = "sk-canary-7";

function check(text: string, env: Record<string, string> = {}) {
  return checkFile(readYaml(text, "headrace.yaml", env));
}

function problemsOf(text: string, env: Record<string, string> = {}): string[] {
  return check(text, env).problems.map(renderProblem);
}

const upstream = "upstreams:\n  - name: a\n    url: http://127.0.0.1:1/v1\n";
const mcpServer = (rest: string) => `tools:\n  servers: [{ name: files, ${rest} }]`;
const atNode = "node: { node: gpu-1, server: own }";
const model = "models:\n  - id: m\n    deployments: [{ upstream: built-in }]\n";

test.each([
  [mcpServer("share: true"), "tools.servers[0].url: is missing. Fix: Give a url, a command, or a node."],
  [mcpServer(`command: x, ${atNode}`), "tools.servers[0].node: cannot be set together with command. Fix: "],
  [mcpServer(`${atNode}, headers: { a: b }`), "tools.servers[0].headers: is for servers with a url. Fix: "],
  [
    mcpServer(`${atNode}, share: true`),
    "tools.servers[0].share: cannot be true for a server that another node shares. Fix: ",
  ],
  [mcpServer("url: http://h, oauth: {}, share: true"), "tools.servers[0].share: cannot be true with oauth"],
  [mcpServer("node: { node: gpu-1, server: A b }"), "tools.servers[0].node.server: must be the name of an MCP server"],
] as const)("reports conflicting settings of an MCP server: %p", (text, expected) => {
  const problems = problemsOf(text);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(expected);
});

describe("faults of form beside references", () => {
  const wrongForm = `${upstream}models:\n  - id: m\n    price: { input: 1 }\n    deployments: [{ upstream: nope }]\n`;

  test("reports an unknown upstream in the same run as a missing price of the model", () => {
    const problems = problemsOf(wrongForm);
    expect(problems).toHaveLength(2);
    expect(problems[0]).toContain("models[0].price.output: is missing");
    expect(problems[1]).toContain("models[0].deployments[0].upstream: ");
  });

  test("reports an unknown upstream in the same run as an unknown key", () => {
    expect(problemsOf(`hots: a\n${upstream}${model.replace("built-in", "nope")}`)).toHaveLength(2);
  });

  test.each([
    ["upstreams: 5\n", "a section of the wrong form"],
    ["upstreams:\n  - name: nope\n", "an entry without its required url"],
    ["engine:\n  commands: none\n", "a list of the wrong form"],
  ])("reports nothing about references beside %p, %s", (section) => {
    expect(problemsOf(section + model.replace("built-in", "nope"))).toHaveLength(1);
  });
});

test("asks for quotes around a secret that YAML reads as a number, without showing it", () => {
  const server = mcpServer("command: x, env: { PIN: 987654321 }");
  const problems = problemsOf(`${upstream}    api_key: 987654321\n${server}`);
  expect(problems).toHaveLength(2);
  for (const problem of problems) {
    expect(problem).toContain("(got a number without quotes)");
    expect(problem).not.toContain("987654321");
  }
});

test("names the only value that a key can have", () => {
  const [problem] = problemsOf("engine: { files: [{ model: x, engine: vllm }] }");
  expect(problem).toContain('must be llama-server (got "vllm"). Fix: Write llama-server.');
});

describe("positions of problems", () => {
  test.each([
    ["port: 70000", "headrace.yaml:1:7  port: must be a whole number from 0 to 65535 (got 70000). Fix: "],
    ["\n\nport: '80'", 'headrace.yaml:3:7  port: must be a whole number from 0 to 65535 (got "80"). Fix: '],
    ["log_format:", "headrace.yaml:1:12  log_format: must be text or json (got nothing). Fix: "],
    ["hots: a", "headrace.yaml:1:1  hots: is not a known key. Fix: Did you mean host? "],
    ["engine:\n  contxt: 1", "headrace.yaml:2:3  engine.contxt: is not a known key. Fix: Did you mean context? "],
    ["engine:\n  models: [hf:a/b]", "headrace.yaml:2:12  engine.models[0]: must be the path of a GGUF file"],
    ["trusted_proxies: [10.0.0.0/8, x]", "headrace.yaml:1:31  trusted_proxies[1]: must be an IPv4 or IPv6 address"],
    [
      "secret: abc",
      "headrace.yaml:1:1  secret: is not read from the file. Fix: Set the environment variable HEADRACE_SECRET",
    ],
    [
      "config: x",
      "headrace.yaml:1:1  config: is not read from the file. Fix: Set the environment variable HEADRACE_CONFIG",
    ],
    [
      `${upstream}    apiKey: x`,
      "headrace.yaml:4:5  upstreams[0].apiKey: is not a known key. Fix: Did you mean api_key? ",
    ],
    [
      "upstreams:\n  - name: a",
      "headrace.yaml:2:5  upstreams[0].url: is missing; it must be a URL that begins with http:// or https://",
    ],
    [
      "upstreams:\n  - name: A b\n    url: http://h/v1",
      "headrace.yaml:2:11  upstreams[0].name: must be 1 to 63 lower-case",
    ],
    [
      "upstreams:\n  - { name: a, url: ftp://h }",
      "headrace.yaml:2:21  upstreams[0].url: must be a URL that begins with http:// or https://",
    ],
    [
      "upstreams:\n  - { name: a, url: http://h/v1?k=1 }",
      "headrace.yaml:2:21  upstreams[0].url: must be a URL that begins with http://",
    ],
    ["upstreams: {}", "headrace.yaml:1:12  upstreams: must be a list of upstreams (got a mapping). Fix: "],
    [
      `${model}    price: { input: abc, output: 1 }`,
      'headrace.yaml:4:21  models[0].price.input: must be a number of USD, from 0 to 1000000000 (got "abc"). Fix: ',
    ],
    [
      `${model}    price: { input: 1, output: -1 }`,
      "headrace.yaml:4:32  models[0].price.output: must be a number of USD",
    ],
    [
      `${model}    environments: [prod]`,
      'headrace.yaml:4:20  models[0].environments[0]: must be live, test or dev (got "prod")',
    ],
    [
      `${model}    environments: []`,
      "headrace.yaml:4:19  models[0].environments: must be a list of live, test and dev",
    ],
    [`${model}    fallbacks: [m]`, "headrace.yaml:4:17  models[0].fallbacks[0]: is the model itself. Fix: "],
    [`${model}    fallbacks: [n, n]`, "headrace.yaml:4:20  models[0].fallbacks[1]: is named twice. Fix: "],
    [
      `${model}    fallbacks: [n]\n    capabilities: { chat: true }\n  - id: n\n    capabilities: { chat: false }\n    deployments: [{ upstream: built-in }]`,
      "headrace.yaml:4:17  models[0].fallbacks[0]: cannot do what m does: its chat is false. Fix: ",
    ],
    [
      `${model}    aliases: ["a*b"]`,
      'headrace.yaml:4:15  models[0].aliases[0]: must be 1 to 256 printable ASCII characters without spaces, and no * but at the end (got "a*b"). Fix: ',
    ],
    [`${model}    aliases: [m]`, "headrace.yaml:4:15  models[0].aliases[0]: is the id of the model itself. Fix: "],
    [`${model}    aliases: [x, y, x]`, "headrace.yaml:4:21  models[0].aliases[2]: is named twice. Fix: "],
    [
      `${model}    aliases: [x, "y*"]\n  - id: n\n    aliases: ["y*"]`,
      "headrace.yaml:6:15  models[1].aliases[0]: is an alias of the model m already. Fix: Remove it from one of the two.",
    ],
    [`${model}    context: 0`, "headrace.yaml:4:14  models[0].context: must be a whole number of tokens, 1 or more"],
    [
      "models:\n  - id: a b\n    deployments: [{ upstream: built-in }]",
      "headrace.yaml:2:9  models[0].id: must be 1 to 256 printable",
    ],
    [
      "models:\n  - id: m\n    deployments: []",
      "headrace.yaml:3:18  models[0].deployments: must be a list of deployments, with one entry at least (got an empty list)",
    ],
    [
      "tiers:\n  - name: free\n    requests_per_minute: 1",
      "headrace.yaml:2:5  tiers[0].tokens_per_minute: is missing; it must be a whole number, 1 or more, or null",
    ],
    ["limits: { body_bytes: 1.5 }", "headrace.yaml:1:23  limits.body_bytes: must be a whole number of bytes"],
    ["cors: { origins: ['https://h/'] }", "headrace.yaml:1:19  cors.origins[0]: must be an origin such as"],
    ["cors: { origins: ['*', 'https://h'] }", 'headrace.yaml:1:18  cors.origins: names origins beside "*"'],
    ["- a", "headrace.yaml:1:1  must be a mapping of keys to values (got a list)"],
    ["a", 'headrace.yaml:1:1  must be a mapping of keys to values (got "a")'],
    ["__proto__: { port: 1 }", "headrace.yaml:1:1  __proto__: is not a known key"],
  ])("reports a problem with line, column, key and fix: %p", (text, expected) => {
    const problems = problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(expected);
  });

  const wrong = (policies: string, more = "") => `${model}    policies: { ${policies} }\n${more}`;
  const guardrail = (members: string) => `guardrails: [{ name: g, ${members} }]`;

  test.each([
    [
      wrong("continuaton: true"),
      "4:17  models[0].policies.continuaton: is not a known key. Fix: Did you mean continuation? ",
    ],
    [wrong("continuation: 1"), "4:31  models[0].policies.continuation: must be true or false (got 1). Fix: "],
    [
      wrong("overflow: {}"),
      "4:27  models[0].policies.overflow.to: is missing; it must be a list of 1 to 16 upstreams. Fix: ",
    ],
    [
      wrong("overflow: { to: [{ upstream: cloud }] }"),
      "4:46  models[0].policies.overflow.to[0].upstream: has no deployment of m. Fix: Name one of built-in, or add a deployment there.",
    ],
    [
      wrong("overflow: { to: [{ upstream: built-in }, { upstream: built-in }] }"),
      "4:70  models[0].policies.overflow.to[1].upstream: is named twice. Fix: Name each upstream once.",
    ],
    [
      wrong("overflow: { to: [{ upstream: built-in, cost_of: openai/gpt5 }] }"),
      "4:65  models[0].policies.overflow.to[0].cost_of: is no model of the price list",
    ],
    [
      wrong('overflow: { to: [{ upstream: built-in }], hours: ["18-8"] }'),
      '4:67  models[0].policies.overflow.hours[0]: must be two times of a day (got "18-8"). Fix: Give them as "18:00-08:00".',
    ],
    [
      wrong("overflow: { to: [{ upstream: built-in }], most_usd_per_request: -1 }"),
      "4:81  models[0].policies.overflow.most_usd_per_request: must be a number of USD from 0 to 1000000 (got -1). Fix: ",
    ],
    [
      wrong("overflow: { to: [{ upstream: built-in }], spend: { usd: 5, per: year } }"),
      '4:81  models[0].policies.overflow.spend.per: must be hour, day, week or month (got "year"). Fix: ',
    ],
    [
      wrong("cache: { ttl_seconds: 0 }"),
      "4:39  models[0].policies.cache.ttl_seconds: must be a whole number of seconds from 1 to 2592000 (got 0). Fix: ",
    ],
    [
      wrong("cache: { requests: some }"),
      '4:36  models[0].policies.cache.requests: must be deterministic, asked or all (got "some"). Fix: ',
    ],
    [
      wrong("cache: { semantic: { model: n, threshold: 1.5 } }"),
      "4:59  models[0].policies.cache.semantic.threshold: must be a number above 0, up to 1 (got 1.5). Fix: ",
    ],
    [
      wrong(
        "cache: { semantic: { model: n, threshold: 0.9 } }",
        "  - id: n\n    capabilities: { embeddings: false }\n",
      ),
      "4:45  models[0].policies.cache.semantic.model: makes no embeddings: its embeddings is false. Fix: ",
    ],
    [
      wrong("guardrails: [no-secret]", "guardrails: [{ name: no-secrets, kind: secrets }]\n"),
      "4:30  models[0].policies.guardrails[0]: names no guardrail of headrace.yaml. Fix: Did you mean no-secrets? Add an entry",
    ],
    [
      wrong("guardrails: [g, g]", guardrail("kind: secrets")),
      "4:33  models[0].policies.guardrails[1]: is named twice. Fix: ",
    ],
    [
      wrong("shadow: { model: m, percent: 5 }"),
      "4:34  models[0].policies.shadow.model: is the model itself. Fix: Name another model.",
    ],
    [
      wrong("shadow: { model: n, percent: 0 }"),
      "4:46  models[0].policies.shadow.percent: must be a number above 0, up to 100 (got 0). Fix: ",
    ],
    [
      wrong("split: [{ model: n, percent: 60 }, { model: o, percent: 41 }]"),
      "4:24  models[0].policies.split: has shares of 101 % together, and 100 % are all requests. Fix: Make the shares smaller.",
    ],
    [
      wrong("split: [{ model: n, percent: 6 }, { model: n, percent: 4 }]"),
      "4:60  models[0].policies.split[1].model: is named twice. Fix: Give it the share of both.",
    ],
    [
      `models: [{ id: m, capabilities: { chat: true }, policies: { split: [{ model: n, percent: 1 }] } }, { id: n, capabilities: { chat: false } }]`,
      "1:78  models[0].policies.split[0].model: cannot do what m does: its chat is false. Fix: ",
    ],
    [
      guardrail("kind: regex"),
      '1:31  guardrails[0].kind: must be patterns, secrets, judge or http (got "regex"). Fix: ',
    ],
    [
      guardrail("kind: patterns"),
      "1:14  guardrails[0].patterns: is missing; kind: patterns needs it. Fix: Add patterns.",
    ],
    [guardrail("kind: http"), "1:14  guardrails[0].url: is missing; kind: http needs it. Fix: Add url."],
    [
      guardrail("kind: judge, model: n"),
      "1:14  guardrails[0].policy: is missing; kind: judge needs it. Fix: Add policy.",
    ],
    [
      guardrail("kind: secrets, model: n"),
      "1:47  guardrails[0].model: is not of kind: secrets. Fix: Leave it out, or give another kind.",
    ],
    [
      guardrail("kind: judge, model: n, policy: p, action: mask"),
      "1:67  guardrails[0].action: must be block or note, as a judge does not say what it found. Fix: Write block.",
    ],
    [
      guardrail("kind: patterns, patterns: [{ name: p, pattern: a }, { name: p, pattern: b }]"),
      "1:51  guardrails[0].patterns: has two patterns with the name p. Fix: ",
    ],
    [
      guardrail("kind: http, url: 'http://user:canary@h/'"),
      "1:42  guardrails[0].url: must be a URL that begins with http://",
    ],
    [
      "guardrails: [{ name: g, kind: secrets }, { name: g, kind: secrets }]",
      "1:50  guardrails[1].name: is the same as guardrails[0].name. Fix: ",
    ],
    [
      "cache: { max_bytes: 1 }",
      "1:21  cache.max_bytes: must be a whole number of bytes from 1048576 to 68719476736 (got 1). Fix: ",
    ],
  ])("reports an invalid policy with its position and a fix: %p", (text, expected) => {
    const problems = problemsOf(text);
    expect(problems).toEqual([expect.stringContaining(`headrace.yaml:${expected}`)]);
    expect(problems.join()).not.toContain("canary");
  });

  test("accepts shares of a split that exceed 100 % only in binary", () => {
    expect(
      problemsOf(
        wrong("split: [{ model: n, percent: 33.4 }, { model: o, percent: 33.3 }, { model: p, percent: 33.3 }]"),
      ),
    ).toEqual([]);
  });

  test("warns of models and upstreams in policies that the file does not name elsewhere", () => {
    const policies =
      "overflow: { to: [{ upstream: gpu }] }, cache: { semantic: { model: e, threshold: 0.9 } }, shadow: { model: n, percent: 1 }, split: [{ model: o, percent: 1 }]";
    const { problems, warnings } = check(`models: [{ id: m, policies: { ${policies} } }]`);
    expect(problems).toEqual([]);
    const unknown = "is not a model of this file, and no upstream has discover: true";
    expect(warnings.map((one) => one.replace(/^.*models\[0\]\.policies\./, ""))).toEqual([
      `cache.semantic.model: ${unknown}`,
      `shadow.model: ${unknown}`,
      `split[0].model: ${unknown}`,
      "overflow.to[0]: names no upstream of this file",
    ]);
  });

  test("reports all problems at once", () => {
    expect(problemsOf("port: x\nhots: 1\nlimits: { depth: 1 }")).toHaveLength(3);
  });
});

describe("positions of syntax errors", () => {
  test.each([
    ["a: 1\nport: 1\nport: 2", "headrace.yaml:3:1  this key stands twice"],
    ["upstreams:\n\t- x", "headrace.yaml:2:1  a tab is used as indentation"],
    ["host: a: b", "headrace.yaml:1:7  a key stands inside this value"],
    ["host: @x", "headrace.yaml:1:7  a text cannot begin with this character"],
    ["host: a\n port: 1", "headrace.yaml:1:7  a key stands inside this value"],
    ["host: !env X", "headrace.yaml:1:7  this tag is not known"],
    ["host: a\n---\nport: 1", "headrace.yaml:2:1  a second document begins here"],
    ["upstreams: [", "headrace.yaml:1:"],
    ["host: *here", "headrace.yaml:1:7  host: refers to an anchor that is not defined above it"],
  ])("names the line of a syntax error: %p", (text, expected) => {
    const problems = problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(expected);
  });

  test("suggests quotes for an unquoted variable between braces", () => {
    expect(problemsOf("upstreams: [{ name: a, url: ${URL} }]")[0]).toContain('put "${NAME}" in quotes');
  });

  test("refuses anchors that expand without bound", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"];
    for (const [before, name] of ["ab", "bc", "cd", "de", "ef"]) {
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(", ")}]`);
    }
    expect(problemsOf(bomb.join("\n"))).toEqual([expect.stringContaining("repeats its anchors too often")]);
  });
});

describe("consistency of entries", () => {
  test.each([
    [
      `${upstream}  - name: a\n    url: http://h/v1`,
      "headrace.yaml:4:11  upstreams[1].name: is the same as upstreams[0].name",
    ],
    [
      `${model}  - id: m\n    deployments: [{ upstream: built-in }]`,
      "headrace.yaml:4:9  models[1].id: is the same as models[0].id",
    ],
    [
      "tiers:\n  - &t { name: t, requests_per_minute: 1, tokens_per_minute: 1 }\n  - *t",
      "headrace.yaml:2:16  tiers[1].name: is the same as tiers[0].name",
    ],
    [
      "upstreams:\n  - name: built-in\n    url: http://h/v1",
      "headrace.yaml:2:11  upstreams[0].name: must not be built-in",
    ],
    [
      `${upstream.replace("name: a", "name: ollama")}models: [{ id: m, deployments: [{ upstream: olama }] }]`,
      "headrace.yaml:4:45  models[0].deployments[0].upstream: names an upstream that is not in upstreams. Fix: Did you mean ollama?",
    ],
    [
      `${upstream}models: [{ id: m, deployments: [{ upstream: a }, { upstream: a, model: m }] }]`,
      "headrace.yaml:4:50  models[0].deployments[1]: is the same upstream and model as an earlier deployment",
    ],
  ])("refuses inconsistent entries: %p", (text, expected) => {
    const problems = problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(expected);
  });
});

describe("environment variables in the file", () => {
  const withKey = `${upstream}    api_key: \${KEY}\n`;

  test("fills in values from environment variables", () => {
    expect(check(withKey, { KEY: secretText }).data.upstreams[0]?.api_key).toBe(secretText);
  });

  test("converts environment variables to numbers and switches where needed, and else keeps text", () => {
    const text = `port: \${N}\nengine: { demo: "\${B:-false}" }\n${withKey}`;
    const { data, problems } = check(text, { N: "8080", KEY: "12345" });
    expect(problems).toEqual([]);
    expect(data).toMatchObject({ port: 8080, engine: { demo: false }, upstreams: [{ api_key: "12345" }] });
  });

  test.each(["x\nport: 1", "x, port: 1", "[a]", "{ a: b }", "null", "&a", "*a", "# x"])(
    "keeps an environment variable one text without structure: %p",
    (value) => {
      const { data, problems } = check("data_dir: ${DIR}", { DIR: value });
      expect(problems).toEqual([]);
      expect(data.data_dir).toBe(value);
      expect(data.port).toBeUndefined();
    },
  );

  test("names each missing environment variable once, with its line", () => {
    expect(problemsOf("\nport: ${NO_PORT}")).toEqual([
      expect.stringMatching(
        /^headrace\.yaml:2:7 {2}port: uses the environment variable NO_PORT, which is not set\. Fix: /,
      ),
    ]);
  });

  test("ignores environment variables in comments and keys", () => {
    expect(check("# ${NOPE}\nport: 1 # ${NOPE}").data.port).toBe(1);
    expect(problemsOf("${NOPE}: 1")[0]).toContain("is not a known key");
  });

  test("never shows the value of an environment variable", () => {
    const text = "port: ${KEY}\nhost: ${KEY}!\nupstreams: [{ name: '${KEY}!', url: '${KEY}', api_key: '${KEY} x' }]";
    const problems = problemsOf(text, { KEY: secretText });
    expect(problems).toHaveLength(5);
    expect(problems.join("\n")).not.toContain(secretText);
    expect(problems[0]).toContain("its value comes from ${KEY}");
  });
});

test.each([
  `${upstream}    api_key: "${secretText} x"`,
  `${upstream}    api_key: [${secretText}]`,
  `${upstream}    api_key: "${secretText}`,
  `${upstream}  api_key: ${secretText}`,
  `${upstream}    api_key: *${secretText}`,
  `${upstream}    api_key: a: ${secretText}`,
  `- a\napi_key: ${secretText}`,
  `upstreams: [{ name: a, url: "http://u:${secretText}@h/v1" }]`,
  `upstreams: [{ name: a, url: "http://h/v1?key=${secretText}" }]`,
  `public_url: https://${secretText}@h`,
  `mode: ${secretText.repeat(4)}`,
])("does not repeat a key written into the file: %p", (text) => {
  const problems = problemsOf(text);
  expect(problems.length).toBeGreaterThan(0);
  expect(problems.join("\n")).not.toContain(secretText);
});

describe("warnings of the file", () => {
  test("warns of a base URL without a path, and of an upstream that serves nothing", () => {
    const text = "upstreams:\n  - name: a\n    url: http://h:1\n    discover: false\n";
    expect(check(text).warnings).toEqual([
      expect.stringMatching(/^headrace\.yaml:3:10 {2}upstreams\[0\]\.url: has no path/),
      expect.stringMatching(/^headrace\.yaml:2:5 {2}upstreams\[0\]: serves nothing/),
    ]);
  });
});

test("accepts an empty file and one with only comments", () => {
  for (const text of ["", "# nothing\n", "---\n"]) expect(check(text).problems).toEqual([]);
});

describe("fallbacks in the file", () => {
  test("accepts fallbacks that name each other, and models that an upstream lists", () => {
    const each = "models:\n  - { id: m, fallbacks: [n], deployments: [{ upstream: built-in }] }\n";
    const other = "  - { id: n, fallbacks: [m], deployments: [{ upstream: built-in }] }\n";
    expect(problemsOf(each + other)).toEqual([]);
    expect(check(each + other).warnings).toEqual([]);
    expect(check(upstream + each).warnings).toEqual([]);
  });

  test("warns of a fallback that no upstream may have", () => {
    expect(check(`${model}    fallbacks: [nobody]`).warnings).toEqual([
      "headrace.yaml:4:17  models[0].fallbacks[0]: is not a model of this file, and no upstream has discover: true",
    ]);
  });
});

test("warns of an alias that is another model's id, which gets the requests", () => {
  const other = `${model}    aliases: [n, free]\n  - id: n\n    deployments: [{ upstream: built-in }]\n`;
  expect(problemsOf(other)).toEqual([]);
  expect(check(other).warnings).toEqual([
    "headrace.yaml:4:15  models[0].aliases[0]: has no effect: it is the id of another model, which gets the requests",
  ]);
});
