// Tests `headrace members` with a server that answers in the form of the API.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiServer, now, pageOf, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { generateApiKey } from "../../domain/api-key.ts";

const link = "https://headrace.example/invitations/aVeryRandomTokenOfFortyThreeCharacters-00000";
const ada = {
  object: "member",
  id: "mbr_1",
  person_id: "usr_1",
  email: "ada@example.com",
  name: "Ada\x1b[2J",
  role: "owner",
  created_at: now - 3 * 86_400,
  last_seen_at: now - 200,
  usage: { spend: 1.25, last_used_at: now - 200 },
};
const bob = { ...ada, id: "mbr_2", person_id: "usr_2", email: "bob@example.com", name: "Bob", role: "member" };
const cy = {
  ...{ ...bob, id: "mbr_3", email: "cy@example.com", name: "Cy", sees_all_usage: true },
  ...{ last_seen_at: null, usage: { spend: 0, last_used_at: null } },
};
const dee = {
  object: "invitation",
  id: "lnk_1",
  email: "dee@example.com",
  role: "admin",
  created_by: "usr_1",
  created_at: now,
  expires_at: now + 6 * 86_400,
};

let api: ApiServer;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headrace-cli-members-"));
  api = startApiServer();
  api.answer = (method, path, url) => {
    if (method === "GET" && path === "/members") return Response.json(pageOf([ada, bob, cy], url));
    if (method === "GET" && path === "/invitations") return Response.json(pageOf([dee], url));
    if (method === "GET" && path === "/session") {
      const accounts = [{ id: "acct_1", membership_id: "mbr_1" }];
      return Response.json({ person: { email: ada.email }, account: { id: "acct_1" }, accounts });
    }
    if (method === "POST" && path === "/invitations") return Response.json({ ...dee, link, mailed: false });
    if (method === "PATCH" && path === "/members/mbr_2") return Response.json({ ...bob, role: "admin" });
    if (method === "DELETE") return Response.json({ id: path.split("/").at(-1), deleted: true });
    return undefined;
  };
});

afterEach(async () => {
  await api.stop();
  await rm(folder, { recursive: true, force: true });
});

function members(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key };
  return runCommand(["members", ...args], { nowMs: now * 1000, configFolder: folder, env, ...surroundings });
}

const changes = () =>
  api.seen.filter(({ method }) => method !== "GET").map(({ method, path, body }) => [method, path, body]);

describe("headrace members list", () => {
  test("lists members of all pages as a table, with invitations", async () => {
    expect(await members(["list"])).toEqual({
      code: 0,
      stderr: "",
      stdout: [
        "E-MAIL           NAME    ROLE    SEES  JOINED                   SPEND, MONTH  LAST USED  ID",
        "ada@example.com  Ada[2J  owner   all   3 days ago                      $1.25  3 min ago  mbr_1",
        "bob@example.com  Bob     member  own   3 days ago                      $1.25  3 min ago  mbr_2",
        "cy@example.com   Cy      member  all   3 days ago                      $0.00  -          mbr_3",
        "dee@example.com  -       admin   -     invited, ends in 6 days             -  -          lnk_1",
        "",
      ].join("\n"),
    });
  });

  test("prints members and invitations as the API returns them with --json", async () => {
    expect(JSON.parse((await members(["list", "--json"])).stdout)).toEqual({
      members: [ada, bob, cy],
      invitations: [dee],
    });
  });

  test("prints the API's words that a key cannot list members", async () => {
    api.answer = () => refusal(403, "permission_denied", "This is for people, not for keys and apps.");
    const { code, stderr } = await members(["list"]);
    expect([code, stderr]).toEqual([1, `error: ${api.baseUrl}: This is for people, not for keys and apps. (403)\n`]);
  });
});

describe("headrace members invite", () => {
  test("prints only the invitation link to standard output, and notes to standard error", async () => {
    const { code, stdout, stderr } = await members(["invite", "dee@example.com", "--role", "admin"]);
    expect([code, stdout]).toEqual([0, `${link}\n`]);
    expect(stderr).toStartWith("dee@example.com is invited as an admin. The link works once, until ");
    expect(stderr).toEndWith("No mail was sent: hand the link over yourself.\n");
    expect(changes()).toEqual([["POST", "/invitations", { email: "dee@example.com", role: "admin" }]]);
  });

  test("prints no link of an invitation that the server mailed", async () => {
    const answer = api.answer;
    api.answer = (method, path, url) =>
      method === "POST" ? Response.json({ ...dee, link: null, mailed: true }) : answer(method, path, url);
    const { code, stdout, stderr } = await members(["invite", "dee@example.com"]);
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toStartWith("dee@example.com is invited as an admin. The link works once, until ");
    expect(stderr).toEndWith("It was sent by mail.\n");
    expect(await members(["invite", "dee@example.com", "--quiet"])).toEqual({
      ...{ code: 0, stdout: "", stderr: "Mailed to dee@example.com.\n" },
    });
  });

  test("invites as a member by default, only the link with --quiet, and everything with --json", async () => {
    expect(await members(["invite", "dee@example.com", "--quiet"])).toEqual({
      code: 0,
      stdout: `${link}\n`,
      stderr: "",
    });
    expect(changes()[0]?.[2]).toEqual({ email: "dee@example.com", role: "member" });
    const { stdout } = await members(["invite", "dee@example.com", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ link, mailed: false });
  });

  test("refuses an unknown role and an API key as address before sending anything", async () => {
    const { code, stderr } = await members(["invite", "dee@example.com", "--role", "king"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("must be one of owner, admin, member")]);
    expect((await members(["invite", generateApiKey("live")])).code).toBe(2);
    expect(api.seen).toEqual([]);
  });
});

describe("headrace members role", () => {
  test("changes the role of a member by address or id", async () => {
    for (const who of ["Bob@Example.com", "mbr_2"]) {
      expect((await members(["role", who, "admin"])).stdout).toBe("bob@example.com is an admin now.\n");
    }
    expect(changes()).toEqual(Array(2).fill(["PATCH", "/members/mbr_2", { role: "admin" }]));
  });

  test("tells how to change the role of an invited user", async () => {
    const { code, stderr } = await members(["role", "dee@example.com", "owner"]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("headrace members invite dee@example.com --role owner"),
    ]);
    expect(changes()).toEqual([]);
  });

  test("reports a role change of an unknown member", async () => {
    const { code, stderr } = await members(["role", "eve@example.com", "owner"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("See headrace members list")]);
  });
});

describe("headrace members quotas and sees", () => {
  test("reads quotas in words, shows the server's, and removes them with none", async () => {
    const quotas = [{ unit: "usd", amount: 5, per: "day", window: "calendar" }];
    api.answer = (method, path, url) =>
      method === "GET"
        ? Response.json(pageOf(path === "/members" ? [ada, bob] : [], url))
        : Response.json({ ...bob, quotas });
    const { stdout } = await members(["quotas", "bob@example.com", "5 usd per day"]);
    expect(stdout).toBe("bob@example.com may use 5 usd per day calendar.\n");
    expect(changes()).toEqual([["PATCH", "/members/mbr_2", { quotas: [{ unit: "usd", amount: 5, per: "day" }] }]]);
    api.answer = (method, path, url) =>
      method === "GET" ? Response.json(pageOf(path === "/members" ? [ada, bob] : [], url)) : Response.json(bob);
    expect((await members(["quotas", "mbr_2", "none"])).stdout).toBe("bob@example.com has no quotas now.\n");
    expect(changes().at(-1)).toEqual(["PATCH", "/members/mbr_2", { quotas: [] }]);
  });

  test("sets whose usage a member sees, and accepts only own or all", async () => {
    expect((await members(["sees", "bob@example.com", "all"])).stdout).toBe(
      "bob@example.com sees the usage of the whole account now.\n",
    );
    expect((await members(["sees", "bob@example.com", "own"])).stdout).toContain("sees their own usage alone now");
    expect(changes().map(([, , body]) => body)).toEqual([{ sees_all_usage: true }, { sees_all_usage: false }]);
    const { code, stderr } = await members(["sees", "bob@example.com", "everything"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("own or all")]);
  });

  test("changes neither quotas nor visible usage of an invited user", async () => {
    for (const args of [
      ["quotas", "dee@example.com", "5 usd per day"],
      ["sees", "dee@example.com", "all"],
    ]) {
      const { code, stderr } = await members(args);
      expect([code, stderr]).toEqual([1, expect.stringContaining("has not joined yet")]);
    }
    expect(changes()).toEqual([]);
  });
});

describe("headrace members remove", () => {
  test("asks before removing a member, with the consequences", async () => {
    const no = await members(["remove", "bob@example.com"], { isTTY: true, answers: ["n"] });
    expect(no.stderr).toContain("Remove bob@example.com from the account? Keys that they made as a member");
    expect([no.code, changes()]).toEqual([1, []]);
    const yes = await members(["remove", "bob@example.com"], { isTTY: true, answers: ["y"] });
    expect(yes.stdout).toBe("bob@example.com is removed.\n");
    expect(changes()).toEqual([["DELETE", "/members/mbr_2", undefined]]);
    expect((await members(["remove", "cy@example.com"])).code).toBe(2);
  });

  test("withdraws an invitation", async () => {
    const { stdout } = await members(["remove", "dee@example.com", "--yes"]);
    expect(stdout).toBe("dee@example.com is no longer invited.\n");
    expect(changes()).toEqual([["DELETE", "/invitations/lnk_1", undefined]]);
  });

  test("removes the own membership without listing members", async () => {
    const answer = api.answer;
    api.answer = (method, path, url) =>
      path === "/members" ? refusal(403, "permission_denied", "Not for members.") : answer(method, path, url);
    expect((await members(["remove", "ada@example.com", "--yes"])).code).toBe(0);
    expect(changes()).toEqual([["DELETE", "/members/mbr_1", undefined]]);
  });
});
