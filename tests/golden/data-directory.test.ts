// Files of the data directory and of a user's configuration, which later and earlier versions of the program read.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectedFile, ConnectedFiles } from "../../src/cli/connect/connected.ts";
import { LoginStore, type StoredLogin } from "../../src/cli/login/login-store.ts";
import type { NodeIdentity, NodeLinkReport } from "../../src/domain/models/node-identity.ts";
import { findManifest, type ModelManifest, saveManifest } from "../../src/engines/llama/model-store.ts";
import { WindowStarts } from "../../src/limits/memory/window-starts.ts";
import { makeBackup } from "../../src/maintenance/backup.ts";
import { claimInstallation } from "../../src/maintenance/installation-id.ts";
import { readManifest } from "../../src/storage/backup/backup-manifest.ts";
import { beginRestore, finishRestore } from "../../src/storage/backup/restore-steps.ts";
import { readCredentials, writeCredentials } from "../../src/storage/files/credentials-file.ts";
import {
  readNodeIdentity,
  readNodeReport,
  writeNodeIdentity,
  writeNodeReport,
} from "../../src/storage/files/node-files.ts";
import { readSecretFile, writeSecretFile } from "../../src/storage/files/secret-file.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { committed, expectCommitted } from "./committed.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-golden-"));
afterAll(() => rmSync(directory, { recursive: true }));
const log = { info() {}, warn() {}, error() {} };
const at = 1_790_000_000;

const credentials = { base_url: "http://127.0.0.1:7545/v1", api_key: "sk_live_hr_x" };
const identity: Required<NodeIdentity> = {
  ...{ gateway_url: "https://g.example", gateway: "https://g.example", node_id: "node_1", name: "rack" },
  ...{ private_key: "key", proxy: "http://proxy.example", joined_at: at },
};
const report: NodeLinkReport = {
  ...{ node_id: "node_1", status: "connected", message: "Connected.", since: at },
  models: [{ id: "m", approved: null }],
};
const login: StoredLogin = {
  ...{ base_url: "https://g.example/v1", access_token: "at", expires_at: at, refresh_token: "rt" },
  ...{ person: { id: "usr_1", email: "ada@example.test", name: "Ada" }, account: { id: "acct_1", name: "Acme" } },
};
const connected: Required<ConnectedFile> = {
  ...{ file: "/home/ada/.codex/config.toml", isNew: true, mode: 0o600, original: "d1", left: "d2" },
  changes: [{ path: ["a", "b"], before: 1, written: "d3" }],
};
const manifest: Required<ModelManifest> = {
  ...{ id: "m", file: "m.gguf", otherFiles: ["m-2.gguf"], bytes: 3, sha256: "0".repeat(64), source: "hf:a/b:c" },
  ...{ pulledAt: at, context: 4_096, tools: true },
  capabilities: { chat: true, completion: true, embeddings: false, rerank: false, tokenize: true },
};

test("writes files as committed and reads them back", async () => {
  const file = (...names: string[]) => readFileSync(join(directory, ...names));
  writeSecretFile(join(directory, "secret"), [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]);
  writeCredentials(directory, credentials);
  writeNodeIdentity(directory, identity);
  writeNodeReport(directory, report);
  const logins = new LoginStore(directory);
  await logins.change(new AbortController().signal, async (all) => void all.set("https://g.example", login));
  const files = new ConnectedFiles(directory);
  files.put("codex", connected);
  await saveManifest(directory, manifest);
  const starts = join(directory, "window-starts");
  writeFileSync(starts, "");
  new WindowStarts(starts, at, log).add("key:k 5h rolling", at, 18_000);
  expectCommitted("data-directory", {
    secret: file("secret"),
    "credentials.json": file("credentials.json"),
    "node.json": file("node.json"),
    "node-status.json": file("node-status.json"),
    "login.json": file("login.json"),
    "connected.json": file("connected.json"),
    "models/m.json": file("models", "m.json"),
    "window starts": file("window-starts"),
  });
  expect(readSecretFile(join(directory, "secret"))).toEqual([Buffer.alloc(32, 1), Buffer.alloc(32, 2)]);
  expect(readCredentials(directory)).toEqual(credentials);
  expect(readNodeIdentity(directory)).toEqual(identity);
  expect(readNodeReport(directory)).toEqual(report);
  expect([...(await logins.read())]).toEqual([["https://g.example", login]]);
  expect([...files.read()]).toEqual([["codex", connected]]);
  const models = join(directory, "models");
  const paths = { file: join(models, "m.gguf"), otherFiles: [join(models, "m-2.gguf")] };
  expect(await findManifest(directory, "m")).toEqual({ ...manifest, ...paths });
  expect(new WindowStarts(starts, at, log).lastOf("key:k 5h rolling", at)).toBe(at);
});

test("writes a backup, restore plan and installation name as committed", async () => {
  const dataDir = join(directory, "data");
  mkdirSync(join(dataDir, "spool"), { recursive: true });
  const db = await openDatabase(join(dataDir, "headrace.db"));
  await new SqlAccountStore(db).ensureFirstAccount(at);
  await claimInstallation(db, dataDir);
  writeFileSync(join(dataDir, "spool", "00000001.spool"), committed("spool")["begin"] ?? "");
  const [row]: { value: string }[] = await db`SELECT value FROM installation WHERE name = 'id'`;
  await db.close();
  expect(readFileSync(join(dataDir, "installation"), "utf8")).toBe(`${row?.value}\n`);
  const target = join(directory, "backup");
  const made = await makeBackup({ dataDir, target, kind: "upgrade", version: "0.1.0", nowSeconds: at, source: "s" });
  const text = readFileSync(join(target, "manifest.json"), "utf8")
    .replace(/"schema": \d+/, '"schema": <steps>')
    .replace(/("counts": \{)[^}]*/, "$1<counts>")
    .replace(/("bytes": )\d+(,\s+"sha256": ")[0-9a-f]+/, "$1<bytes>$2<sha256>");
  const draft = join(directory, "data", "draft");
  mkdirSync(draft);
  await beginRestore(dataDir, draft, "replaced-1");
  expectCommitted("backup", {
    "manifest.json": text,
    "restoring/restore.json": readFileSync(join(dataDir, "restoring", "restore.json")),
    installation: readFileSync(join(dataDir, "installation"), "utf8").replace(/inst_[\w-]+/, "inst_<random>"),
  });
  expect(readManifest(target)).toEqual(made.manifest);
  expect(await finishRestore(dataDir)).toBe(join(dataDir, "replaced-1"));
});
