// The Compose file is read by Docker Compose itself, and the Dockerfile by its linter.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { deployTools } from "../../scripts/test-programs.mjs";
import { deploy, output, run, temporaryDirectory } from "./tools.ts";

/** What is copied to deploy/.env, and the same filled in. */
const example = await Bun.file(join(deploy, "compose.env.example")).text();
const filledIn = example.replaceAll(/^([A-Z_]+)=$/gm, "$1=0123456789abcdef0123456789abcdef");

/** Has Compose read a text as compose.yaml, with variables from a text as the file `.env`. */
async function config(env: string, change = (text: string) => text) {
  await using directory = await temporaryDirectory();
  const [file, variables] = ["compose.yaml", ".env"].map((name) => join(directory.path, name)) as [string, string];
  await Bun.write(file, change(await Bun.file(join(deploy, "compose.yaml")).text()));
  await Bun.write(variables, env);
  const places = ["--file", file, "--env-file", variables, "--project-directory", deploy];
  return await run([deployTools.compose, ...places, "--profile", "replicas", "config", "--format", "json"]);
}

test("passes the example's settings through Compose to each replica", async () => {
  const { code, stdout, stderr } = await config(filledIn);
  expect([code, stderr]).toEqual([0, ""]);
  const { services } = JSON.parse(stdout);
  expect(Object.keys(services).toSorted()).toEqual(["headrace-1", "headrace-2", "nginx", "postgres", "valkey"]);
  for (const name of ["headrace-1", "headrace-2"]) {
    const { environment, cap_drop, read_only, build } = services[name];
    expect([cap_drop, read_only]).toEqual([["ALL"], true]);
    expect(environment.HEADRACE_DATABASE_URL).toContain(services.postgres.environment.POSTGRES_PASSWORD);
    expect(environment.HEADRACE_REDIS_URL).toContain(services.valkey.environment.VALKEY_PASSWORD);
    expect(await Bun.file(join(build.context, build.dockerfile)).exists()).toBe(true);
  }
});

test("names a missing variable and refuses a misspelt field in Compose", async () => {
  // It names any one of several.
  expect((await config(example)).stderr).toMatch(/required variable (HEADRACE_SECRET|\w+_PASSWORD) is missing a value/);
  const misspelt = await config(filledIn, (text) => text.replace("stop_grace_period:", "stop_grace_perod:"));
  expect(misspelt.code).not.toBe(0);
  expect(misspelt.stderr).toContain("stop_grace_perod");
});

test("passes the Dockerfile linter without findings", async () => {
  expect(await output([deployTools.hadolint, join(deploy, "Dockerfile")])).toBe("");
});
