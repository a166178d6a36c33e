// Schema, reference page and example say the same as the parser.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for variables.
import { describe, expect, test } from "bun:test";
import * as z from "zod";
import { checkFile } from "./check-file.ts";
import { exampleFile } from "./example.ts";
import { schemaAt } from "./field.ts";
import { fileSchema } from "./file-schema.ts";
import { options } from "./options.ts";
import { readYaml } from "./read-yaml.ts";
import { configJsonSchema, configReference } from "./reference.ts";

const env = {
  CLOUD_API_KEY: "k",
  ANTHROPIC_API_KEY: "a",
  AZURE_API_KEY: "z",
  SMTP_PASSWORD: "p",
  ISSUES_TOKEN: "i",
  CRM_CLIENT_SECRET: "c",
  SSO_CLIENT_SECRET: "s",
  S3_KEY_ID: "i",
  S3_KEY: "k",
  OTLP_TOKEN: "t",
  GUARD_TOKEN: "g",
};

/** The example as an editor's validator sees it: variables not filled in. */
function exampleAsWritten(): unknown {
  return Bun.YAML.parse(exampleFile);
}

describe("the published JSON schema", () => {
  const schema = configJsonSchema();
  const validator = z.fromJSONSchema(schema);

  test("publishes a JSON schema of draft 2020-12 that refuses unknown keys and describes every key", () => {
    expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
    expect(schema.additionalProperties).toBe(false);
    for (const property of Object.values(schema.properties ?? {})) {
      expect(property).toMatchObject({ description: expect.stringMatching(/\.$/) });
    }
  });

  test("includes the defaults in the published JSON schema", () => {
    expect(schema.properties).toMatchObject({
      port: { default: 7545 },
      host: { default: "127.0.0.1" },
      limits: { properties: { body_bytes: { default: 33_554_432 } } },
    });
  });

  test("accepts the example as written, with its variables, by the published JSON schema", () => {
    expect(validator.safeParse(exampleAsWritten()).error).toBeUndefined();
  });

  test.each([
    { port: "x" },
    { port: 70_000 },
    { hots: "a" },
    { mode: "prod" },
    { upstreams: [{ name: "a" }] },
    { models: [{ id: "m", deployments: [] }] },
    { tiers: [{ name: "t", requests_per_minute: "1", tokens_per_minute: null }] },
  ])("refuses %j by the published JSON schema", (data) => {
    expect(validator.safeParse(data).success).toBe(false);
  });

  test.each([{ port: "${PORT}" }, { engine: { demo: "${DEMO:-true}" } }, { mode: "${MODE}" }])(
    "accepts %j by the published JSON schema",
    (data) => {
      expect(validator.safeParse(data).success).toBe(true);
    },
  );
});

describe("the reference page", () => {
  const page = configReference();

  test("loads the example of the reference page without a problem, using every key", () => {
    const { data, problems } = checkFile(readYaml(exampleFile, "headrace.yaml", env));
    expect(problems).toEqual([]);
    expect(page).toContain(exampleFile.trimEnd());
    expect(Object.keys(data).sort()).toEqual(Object.keys(fileSchema.shape).sort());
    expect(data.upstreams[1]).toMatchObject({ timeout_seconds: 600 });
  });

  test("lists every flag, variable and key of the options on the reference page", () => {
    for (const { flag, env: variable, file } of Object.values(options)) {
      for (const name of [flag, variable, file?.join(".")]) {
        if (name !== undefined) expect(page).toContain(`\`${name}\``);
      }
    }
  });

  test("describes every key on the reference page, and whether it is required", () => {
    expect(page).toContain("| `models[].deployments[].weight` | a whole number from 1 to 1000000 | `1` |");
    expect(page).toContain("| `models[].capabilities.chat` | true or false | none |");
    expect(page).toMatch(/\| `upstreams\[\]\.url` \| [^|]+ \| required \|/);
    expect(page).not.toMatch(/undefined|\[object|\| +\| +\|/);
  });
});

test("keeps the file's schema and the options consistent, and the secret out of both", () => {
  for (const option of Object.values(options)) {
    if (option.file !== undefined) expect(schemaAt(fileSchema, option.file)).toBe(option.schema);
  }
  expect(options.secret).toMatchObject({ file: undefined, flag: undefined });
});
