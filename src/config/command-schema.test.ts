// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for variables.
import { describe, expect, test } from "bun:test";
import { checkFile } from "./check-file.ts";
import { commandConfigs, memoryConfig } from "./file-config.ts";
import { renderProblem } from "./problems.ts";
import { readYaml } from "./read-yaml.ts";

/** A file with one command, and further lines. */
function check(command: string, more = "") {
  const env = { PORT: "1", TOKEN: "sk-canary" };
  return checkFile(readYaml(`engine:\n  commands:\n    - ${command}\n${more}`, "headrace.yaml", env));
}

const plain = '{ name: a, models: [m], command: "serve --port ${PORT}" }';

describe("a command in the file", () => {
  test("reads a command with the port variable, words, sizes and passed variables", () => {
    const { data, problems } = check(
      '{ name: a, models: [m], command: "serve ${TOKEN} \'a b\' -p ${PORT}", directory: models, env: { T: "${TOKEN}" }, memory: { gpu: { 1: 2GB } } }',
    );
    expect(problems).toEqual([]);
    expect(commandConfigs(data, (path) => `/etc/${path}`)).toMatchObject([
      {
        ...{ command: ["serve", "sk-canary", "a b", "-p", "${PORT}"], env: { T: "sk-canary" } },
        ...{ directory: "/etc/models", memory: { ram: 0, gpu: { 1: 2e9 } }, keepSeconds: 600, readySeconds: 600 },
      },
    ]);
    expect(memoryConfig(data)).toEqual({ ram: undefined, gpu: undefined });
  });

  test.each([
    ['{ name: a, models: [m], command: "serve ${TOKEN}" }', "", "must be a command line, or a list of its words"],
    ['{ name: a, models: [m], command: "serve \'x ${PORT}" }', "", "with ${PORT} in it and its quotes closed"],
    [plain.replace("name: a", "name: built-in"), "", "is the name of another engine or upstream"],
    [plain, "upstreams: [{ name: a, url: http://127.0.0.1:1/v1 }]", "is the name of another engine or upstream"],
    [plain.replace("{ ", "{ memory: { ram: much }, "), "", "must be a size such as 6GB or 512MB, or whole bytes"],
    [plain.replace("{ ", "{ asleep_gpu: { 0: 1GB }, "), "", "needs memory"],
    [
      plain,
      "  files: [{ model: x, engine: llama-server }]\nupstreams: [{ name: llama-server-x, url: http://127.0.0.1:1/v1 }]",
      "gives an engine the name llama-server-x, which an upstream or command has",
    ],
    [plain, "models: [{ id: x, deployments: [{ upstream: b }] }]", "deployments[0].upstream"],
  ])("refuses an invalid command: %p %p", (command, more, message) => {
    const problems = check(command, more).problems.map(renderProblem);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
    expect(problems[0]).not.toContain("sk-canary");
  });

  test("accepts a command as the upstream of a deployment", () => {
    expect(check(plain, "models: [{ id: x, deployments: [{ upstream: a, model: m }] }]").problems).toEqual([]);
  });
});
