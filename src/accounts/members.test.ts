// Who may do what to the members of an account: every standing against every role.
import { describe, expect, test } from "bun:test";
import { accountFor, principalFor } from "../../tests/support/principal.ts";
import { type Role, roles } from "../domain/people/role.ts";
import type { Principal } from "../domain/principal.ts";
import {
  changeRole,
  removeMember,
  requireChanged,
  requireMayInvite,
  requireMayWithdraw,
  requireSeesMembers,
  type TargetMember,
} from "./members.ts";

const accountId = "acct_1";
const origin = { nowSeconds: 1_790_000_000, clientAddress: "203.0.113.9", requestId: "req_1" };

function signedIn(role: Role, { isOperator = false, account = accountId } = {}): Principal {
  return principalFor({
    account: accountFor({ id: account }),
    scopes: new Set(isOperator ? ["keys:manage", "admin:manage"] : ["keys:manage"]),
    person: { id: "usr_self", role, isOperator, sessionId: "ses_1" },
  });
}

const target = (role: Role, personId = "usr_other"): TargetMember => ({ id: "mbr_1", accountId, personId, role });
const actors = {
  owner: signedIn("owner"),
  admin: signedIn("admin"),
  member: signedIn("member"),
  operator: signedIn("member", { isOperator: true, account: "acct_other" }),
  "operator's key": principalFor({ scopes: new Set(["admin:manage"]) }),
  "member of another account": signedIn("owner", { account: "acct_other" }),
  key: principalFor(),
  app: principalFor({ appId: "app_1", scopes: new Set(["admin:manage"]) }),
} satisfies Record<string, Principal>;
type Actor = keyof typeof actors;

/** Whether it goes through; anything but `permission_denied` is a fault of the test. */
function allowed(act: () => unknown): boolean {
  try {
    act();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: "permission_denied" });
    return false;
  }
}

const allActors = Object.keys(actors) as Actor[];
const rulesOverRoles = (mayAct: (by: Principal, role: Role) => boolean) =>
  Object.fromEntries(allActors.map((actor) => [actor, roles.filter((role) => mayAct(actors[actor], role))]));
const all = [...roles];
const nobody: Record<string, Role[]> = { member: [], "member of another account": [], key: [], app: [] };

describe("rules of membership", () => {
  test("lets owners, admins and operators list members", () => {
    const seeing = allActors.filter((one) => allowed(() => requireSeesMembers(actors[one], accountId)));
    expect(seeing).toEqual(["owner", "admin", "operator", "operator's key"]);
  });

  test("lets admins invite members, and owners and operators any role; likewise for withdrawals", () => {
    const expected: Record<string, Role[]> = {
      ...nobody,
      owner: all,
      admin: ["member"],
      operator: all,
      "operator's key": all,
    };
    for (const rule of [requireMayInvite, requireMayWithdraw]) {
      expect(rulesOverRoles((by, role) => allowed(() => rule(by, accountId, role)))).toEqual(expected);
    }
  });

  test("lets admins remove members, and owners and operators any role", () => {
    expect(rulesOverRoles((by, role) => allowed(() => removeMember(by, target(role), origin)))).toEqual({
      ...nobody,
      owner: all,
      admin: ["member"],
      operator: all,
      "operator's key": all,
    });
  });

  test("lets only owners and operators change roles", () => {
    for (const after of roles) {
      expect(rulesOverRoles((by, role) => allowed(() => changeRole(by, target(role), after, origin)))).toEqual({
        ...nobody,
        owner: all,
        admin: [],
        operator: all,
        "operator's key": all,
      });
    }
  });

  // hardening: K6
  test.each([["owner"], ["admin"], ["member"]] as const)(
    "%s: does not let a user change their own role, not even as an operator",
    (role) => {
      for (const by of [signedIn(role), signedIn(role, { isOperator: true })]) {
        for (const after of roles) {
          expect(() => changeRole(by, target(role, "usr_self"), after, origin)).toThrow(
            "nobody changes their own role",
          );
        }
      }
    },
  );

  test("lets every member leave, but not remove themselves through another account", () => {
    for (const role of roles) {
      const { event } = removeMember(signedIn(role), target(role, "usr_self"), origin);
      expect(event.detail).toEqual({ person_id: "usr_self", role, left: true });
    }
    const elsewhere = signedIn("member", { account: "acct_other" });
    expect(allowed(() => removeMember(elsewhere, target("member", "usr_self"), origin))).toBe(false);
  });
});

test("audits a change of role with its actor, before and after", () => {
  const change = changeRole(signedIn("owner"), target("member"), "admin", origin);
  expect(change).toMatchObject({
    role: "admin",
    event: {
      ...{
        action: "member.updated",
        actor: { type: "person", id: "usr_self" },
        accountId,
        targetId: "mbr_1",
        at: origin.nowSeconds,
      },
      detail: { person_id: "usr_other", role: { before: "member", after: "admin" } },
    },
  });
  expect(changeRole(signedIn("owner"), target("admin"), "admin", origin)).toBeUndefined();
});

test("reports a missing member and the last owner as the store's refusal", () => {
  expect(requireChanged("done")).toBeUndefined();
  expect(() => requireChanged("missing")).toThrow("There is no such member of this account.");
  expect(() => requireChanged("last_owner")).toThrow("An account keeps at least one owner.");
});
