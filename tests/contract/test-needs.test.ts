// `npm test -- FILE` installs and builds what the file needs, and nothing else.
import { expect, test } from "bun:test";
import { needsOf } from "../../scripts/test-needs.mjs";

const nothing = {
  ...{ debian: {}, dashboard: false, guides: false },
  ...{ programs: false, deployTools: false, smallDebians: false, npms: false },
};

const packagesOf = (path: string) => Object.values(needsOf([path]).debian);

test.each([
  "src/base/money.test.ts",
  "src/http1/server/server.test.ts",
  "tests/contract/streams.test.ts",
  "tests/e2e/limits.test.ts",
  "no-file-of-this-name",
])("installs and builds nothing for %s", (path) => {
  expect(needsOf([path])).toEqual(nothing);
});

test("finds the programs that a test uses through modules of tests/support", () => {
  expect(packagesOf("src/ledger/ledger.test.ts")).toEqual(["postgresql"]);
  expect(packagesOf("src/storage/redis/redis-change-feed.test.ts")).toContain("redis-server");
  expect(packagesOf("tests/faults/node-behind-nat.test.ts")).toEqual(expect.arrayContaining(["iproute2", "nftables"]));
  expect(packagesOf("tests/upgrades/one-server.test.ts")).toContain("git");
  expect(packagesOf("tests/browser/dashboard-keys.test.ts")).toContain("chromium-headless-shell");
  expect(needsOf(["tests/browser/dashboard-keys.test.ts"])).toMatchObject({ dashboard: true, deployTools: false });
  expect(needsOf(["tests/faults/oauth-kill.test.ts"])).toMatchObject({ dashboard: true, programs: false });
  expect(needsOf(["tests/e2e/agents/codex.test.ts"])).toMatchObject({ programs: true, dashboard: false });
  expect(needsOf(["tests/deploy/helm.test.ts"])).toMatchObject({ deployTools: true, programs: false });
  expect(needsOf(["tests/install/install.test.ts"])).toMatchObject({ smallDebians: true, npms: true });
});

test("matches folders and parts of names like the test runner", () => {
  expect(packagesOf("tests/faults")).toEqual(expect.arrayContaining(["strace", "redis-server", "postgresql"]));
  expect(needsOf(["ledger-recovery"])).toEqual(needsOf(["src/ledger/ledger-recovery.test.ts"]));
});

test("lists no requirement that no test has", () => {
  expect(needsOf(["src", "tests", "bench"])).toEqual(needsOf([]));
});
