// credentials.json: readable only by its owner at every moment, replaced atomically, and validated when it is read.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentialsPath, readCredentials, writeCredentials } from "./credentials-file.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-credentials-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const credentials = { base_url: "http://127.0.0.1:7545/v1", api_key: "sk_dev_hr_x" };

test("reads back credentials as JSON with exactly base_url and api_key, and leaves no draft", () => {
  writeCredentials(directory, credentials);
  expect(readCredentials(directory)).toEqual(credentials);
  expect(JSON.parse(readFileSync(credentialsPath(directory), "utf8"))).toEqual(credentials);
  expect(readdirSync(directory)).toEqual(["credentials.json"]);
});

test("restricts the credentials file to its owner, even over an open file and under any umask", () => {
  const before = process.umask(0);
  try {
    writeFileSync(credentialsPath(directory), "{}", { mode: 0o666 });
    chmodSync(credentialsPath(directory), 0o666);
    writeCredentials(directory, credentials);
    expect(statSync(credentialsPath(directory)).mode & 0o777).toBe(0o600);
  } finally {
    process.umask(before);
  }
});

test("does not inherit the open permissions of a draft that a crash left", () => {
  const draft = `${credentialsPath(directory)}.${process.pid}`;
  writeFileSync(draft, "old", { mode: 0o666 });
  chmodSync(draft, 0o666);
  writeCredentials(directory, credentials);
  expect(statSync(credentialsPath(directory)).mode & 0o777).toBe(0o600);
});

test("reads no credentials without a file", () => {
  expect(readCredentials(directory)).toBeUndefined();
  expect(readCredentials(join(directory, "nowhere"))).toBeUndefined();
});

test.each([
  "",
  "{",
  "null",
  "[]",
  "7",
  '"x"',
  "{}",
  '{"base_url":"x"}',
  '{"api_key":"x"}',
  '{"base_url":1,"api_key":2}',
])("reads no credentials from %p", (content) => {
  writeFileSync(credentialsPath(directory), content);
  expect(readCredentials(directory)).toBeUndefined();
});

test("ignores other members of the credentials file", () => {
  writeFileSync(credentialsPath(directory), JSON.stringify({ ...credentials, more: 1 }));
  expect(readCredentials(directory)).toEqual(credentials);
});
