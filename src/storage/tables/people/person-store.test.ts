// People in real databases of both kinds: changes in one transaction, what ends with a membership, and links that work
// once.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase } from "../../../../tests/support/databases.ts";
import { openTestPeople, operators, type TestPeople } from "../../../../tests/support/people.ts";
import { keyRecordFor } from "../../../../tests/support/principal.ts";
import { environments } from "../../../domain/api-key.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import {
  type Membership,
  membershipCredentialId,
  type OneTimeLink,
  type Passkey,
} from "../../../domain/people/person.ts";
import { keyStatus } from "../../../domain/principal.ts";

let all: TestPeople;

onEachDatabase((databases) => {
  beforeEach(async () => {
    all = await openTestPeople(databases);
  });

  afterEach(() => all.close());

  const now = () => all.clock.nowSeconds();
  const firstPage = { after: undefined, limit: 100 };

  function event(more: Partial<AuditEvent> = {}): AuditEvent {
    return {
      id: `audit_${Bun.randomUUIDv7()}`,
      at: now(),
      action: "person.updated",
      actor: { type: "operator" },
      accountId: null,
      targetId: null,
      clientAddress: null,
      requestId: null,
      detail: {},
      ...more,
    };
  }

  function link(more: Partial<OneTimeLink> = {}): OneTimeLink {
    const id = `lnk_${Bun.randomUUIDv7()}`;
    return {
      id,
      purpose: "invitation",
      digest: `digest of ${id}`,
      delivery: "shown",
      email: "guest@example.com",
      personId: null,
      accountId: all.accountId,
      role: "member",
      createdAt: now(),
      expiresAt: now() + 100,
      usedAt: null,
      createdBy: null,
      ...more,
    };
  }

  function passkey(personId: string, more: Partial<Passkey> = {}): Passkey {
    return {
      id: "credential",
      personId,
      name: "Phone",
      publicKey: "pk",
      counter: 3,
      transports: ["internal", "hybrid"],
      backedUp: true,
      createdAt: now(),
      lastUsedAt: null,
      ...more,
    };
  }

  const credentialsOf = (membership: Membership) =>
    Promise.all(
      environments.map(async (environment) => {
        const chain = await all.keys.findChainById(membershipCredentialId(membership.id, environment));
        if (!chain) throw new Error("no credential");
        return chain.keys[0];
      }),
    );
  const statusOf = async (id: string) => {
    const chain = await all.keys.findChainById(id);
    return chain?.keys.map((key) => keyStatus(key, now()));
  };
  const eventIds = async () => (await all.audit.list({}, firstPage)).map(({ id }) => id);

  describe("stored memberships", () => {
    test("gives a membership a credential in each environment that no presented key matches", async () => {
      const ada = await all.addPerson({ email: "Ada@Example.com " });
      const membership = await all.addMember(ada, "admin");
      const credentials = await credentialsOf(membership);
      for (const [i, environment] of environments.entries()) {
        const id = `${membership.id}_${environment}`;
        expect(credentials[i]).toMatchObject({
          ...{ id, kind: "membership", environment, digest: id, limitId: id, name: "ada@example.com", role: "admin" },
          ...{ personId: ada.id, accountId: all.accountId, parentId: null, prefix: "", last4: "", revoked: false },
        });
      }
      expect(await all.keys.listKeys({ accountId: all.accountId, environment: "live" }, firstPage)).toEqual([]);
    });

    test("ends the keys below a removed membership for good, and notifies caches", async () => {
      const [owner, ada] = [await all.addPerson({ email: "o@x.org" }), await all.addPerson({ email: "ada@x.org" })];
      await all.addMember(owner, "owner");
      const membership = await all.addMember(ada, "member");
      const parentId = membershipCredentialId(membership.id, "live");
      await all.keys.insertKey(keyRecordFor({ id: "key_own", accountId: all.accountId, parentId }), event());
      const revision = await all.keys.credentialRevision();
      expect(await all.people.removeMembership(membership.id, event())).toBe("done");
      expect(await statusOf("key_own")).toEqual(["active", "revoked"]);
      expect(await credentialsOf(membership)).toMatchObject([{ revoked: true }, { revoked: true }, { revoked: true }]);
      expect(await all.keys.credentialRevision()).toBe(revision + 1);
      expect(await all.people.membershipsOf(ada.id)).toEqual([]);
      // A person who becomes a member again gets new credentials. The earlier ones stay revoked.
      const again = await all.addMember(ada, "member");
      expect(again.id).not.toBe(membership.id);
      expect(await statusOf("key_own")).toEqual(["active", "revoked"]);
      expect(await credentialsOf(again)).toMatchObject([{ revoked: false }, { revoked: false }, { revoked: false }]);
    });

    test("changes a role in a membership and its credentials at once, and notifies caches", async () => {
      const ada = await all.addPerson({ email: "ada@x.org" });
      const membership = await all.addMember(ada, "member");
      const revision = await all.keys.credentialRevision();
      expect(await all.people.setRole(membership.id, "owner", event())).toBe("done");
      expect(await all.people.findMembership(membership.id)).toEqual({ ...membership, role: "owner" });
      expect((await credentialsOf(membership)).map(({ role }) => role)).toEqual(["owner", "owner", "owner"]);
      expect(await all.keys.credentialRevision()).toBe(revision + 1);
      expect(await all.people.setRole(membership.id, "owner", event())).toBe("done");
      expect(await all.keys.credentialRevision()).toBe(revision + 1);
      expect(await all.people.setRole("mbr_nobody", "owner", event())).toBe("missing");
      expect(await all.people.removeMembership("mbr_nobody", event())).toBe("missing");
    });

    test("changes a member's quotas in the membership and its credentials at once, and notifies caches", async () => {
      const membership = await all.addMember(await all.addPerson({ email: "ada@x.org" }), "member");
      const revision = await all.keys.credentialRevision();
      const quotas = [{ unit: "usd", amount: 2, per: "day", window: "calendar" }] as const;
      expect(await all.people.setQuotas(membership.id, quotas, event())).toBe("done");
      expect((await all.people.findMembership(membership.id))?.quotas).toEqual(quotas);
      const [member] = await all.people.listMembers(all.accountId, firstPage);
      expect(member?.quotas).toEqual(quotas);
      expect((await credentialsOf(membership)).map((one) => one.quotas)).toEqual([quotas, quotas, quotas]);
      expect(await all.keys.credentialRevision()).toBe(revision + 1);
      expect(await all.people.setQuotas("mbr_nobody", [], event())).toBe("missing");
    });

    test("changes a member's tools in the membership and its credentials at once, and notifies caches", async () => {
      const membership = await all.addMember(await all.addPerson({ email: "ada@x.org" }), "member");
      for (const tools of [["github", "crm/read_*"], [], null]) {
        const revision = await all.keys.credentialRevision();
        expect(await all.people.setTools(membership.id, tools, event())).toBe("done");
        expect((await all.people.findMembership(membership.id))?.tools).toEqual(tools);
        expect((await credentialsOf(membership)).map((one) => one.tools)).toEqual([tools, tools, tools]);
        expect(await all.keys.credentialRevision()).toBe(revision + 1);
      }
      expect(await all.people.setTools("mbr_nobody", [], event())).toBe("missing");
    });

    test("keeps an owner in the account if two are removed or demoted at once", async () => {
      const memberships = [];
      for (const email of ["a@x.org", "b@x.org"]) {
        memberships.push(await all.addMember(await all.addPerson({ email }), "owner"));
      }
      const [a, b] = memberships as [Membership, Membership];
      const outcomes = await Promise.all([
        all.people.removeMembership(a.id, event()),
        all.people.setRole(b.id, "admin", event()),
      ]);
      expect(outcomes.toSorted()).toEqual(["done", "last_owner"]);
      const [last] = await all.people.listMembers(all.accountId, firstPage);
      expect(last?.role).toBe("owner");
      const before = await eventIds();
      expect(await all.people.setRole(last?.id ?? "", "member", event())).toBe("last_owner");
      expect(await all.people.removeMembership(last?.id ?? "", event())).toBe("last_owner");
      expect(await eventIds()).toEqual(before);
    });

    test("lets a member leave an account without an owner", async () => {
      const membership = await all.addMember(await all.addPerson({ email: "a@x.org" }), "admin");
      expect(await all.people.removeMembership(membership.id, event())).toBe("done");
    });

    test("refuses a change by a former member", async () => {
      const [a, b] = [await all.addPerson({ email: "a@x.org" }), await all.addPerson({ email: "b@x.org" })];
      const [ofA, ofB] = [await all.addMember(a, "owner"), await all.addMember(b, "owner")];
      const by = (id: string) => event({ actor: { type: "person", id }, accountId: all.accountId });
      const outcomes = await Promise.allSettled([
        all.people.removeMembership(ofB.id, by(a.id)),
        all.people.removeMembership(ofA.id, by(b.id)),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect(await all.people.listMembers(all.accountId, firstPage)).toMatchObject([{ personId: a.id }]);
    });

    test("lists members by page, oldest first, with their last use, and none of other accounts", async () => {
      const elsewhere = await all.addAccount();
      const people = [];
      for (const email of ["a@x.org", "b@x.org", "c@x.org"]) people.push(await all.addPerson({ email, name: email }));
      const [a, b, c] = people as [(typeof people)[0], (typeof people)[0], (typeof people)[0]];
      await all.addMember(c, "owner");
      const second = await all.addMember(a, "member");
      await all.addMember(b, "owner", elsewhere.id);
      all.clock.advance(5_000);
      await all.startSession(a);
      const listed = await all.people.listMembers(all.accountId, { after: undefined, limit: 1 });
      expect(listed).toMatchObject([{ personId: c.id, email: "c@x.org", lastSeenAt: null }]);
      const rest = await all.people.listMembers(all.accountId, { after: listed[0]?.id, limit: 5 });
      expect(rest).toEqual([{ ...second, email: "a@x.org", name: "a@x.org", lastSeenAt: now() }]);
      expect(await all.people.membershipsOf(b.id)).toMatchObject([
        { accountName: "An account", accountStatus: "active" },
      ]);
    });

    test("deletes a user with everything theirs, even the last owner, and keeps the revoked records", async () => {
      const ada = await all.addPerson({ email: "ada@x.org", password: "a long password" });
      const membership = await all.addMember(ada, "owner");
      const { cookie } = await all.startSession(ada);
      const identity = { issuer: "https://idp.example", subject: "1", personId: ada.id, createdAt: now() };
      await all.people.apply({ addIdentity: identity }, event());
      await all.people.insertPasskey(passkey(ada.id), event());
      const reset = link({ purpose: "password_reset", personId: ada.id, accountId: null, email: null, role: null });
      const invitation = link({ createdBy: ada.id });
      for (const one of [reset, invitation]) await all.people.insertLink(one, event());

      expect(await all.people.deletePerson(ada.id, event({ action: "person.deleted" }))).toBe("done");

      expect(await all.people.findPerson(ada.id)).toBeUndefined();
      expect(await all.people.findByIdentity("https://idp.example", "1")).toBeUndefined();
      expect(await all.people.findPasskey("credential")).toBeUndefined();
      expect(
        await all.sessions.find(cookie, { clientAddress: "::1", requestId: "r", userAgent: null }),
      ).toBeUndefined();
      for (const { digest } of [reset, invitation]) expect(await all.people.findLink(digest)).toBeUndefined();
      expect(await all.people.listMembers(all.accountId, firstPage)).toEqual([]);
      expect(await credentialsOf(membership)).toMatchObject([{ revoked: true }, { revoked: true }, { revoked: true }]);
      expect(await all.people.deletePerson(ada.id, event())).toBe("missing");
    });

    test("neither deletes an operator nor makes a deleted user one, even concurrently", async () => {
      const ada = await all.addPerson({ email: "ada@x.org", isOperator: true });
      const before = await eventIds();
      expect(await all.people.deletePerson(ada.id, event())).toBe("operator");
      expect(await all.people.findPerson(ada.id)).toEqual(ada);
      expect(await eventIds()).toEqual(before);

      const bob = await all.addPerson({ email: "bob@x.org" });
      const setOperator = { personId: bob.id, isOperator: true };
      const both = [all.people.deletePerson(bob.id, event()), all.people.apply({ setOperator }, event())];
      expect(await Promise.all(both)).toEqual(["done", "person_missing"]);
      const eve = await all.addPerson({ email: "eve@x.org" });
      const promoted = all.people.apply({ setOperator: { personId: eve.id, isOperator: true } }, event());
      expect(await Promise.all([promoted, all.people.deletePerson(eve.id, event())])).toEqual(["done", "operator"]);
    });
  });

  test("suspends any person but the last operator who is not suspended, and resumes them", async () => {
    const suspend = ({ id: personId }: { id: string }, suspendedAt: number | null = now()) =>
      all.people.apply({ setSuspended: { personId, suspendedAt } }, event());
    const member = await all.addPerson({ email: "member@x.org" });
    // Without an operator among the people, keys operate the installation.
    expect(await suspend(member)).toBe("done");
    expect(await all.people.findPerson(member.id)).toEqual({ ...member, suspendedAt: now() });
    const [ada, bob] = [
      await all.addPerson({ email: "ada@x.org", isOperator: true }),
      await all.addPerson({ email: "bob@x.org", isOperator: true }),
    ];
    expect(await suspend(ada)).toBe("done");
    expect(await suspend(bob)).toBe("last_operator");
    expect(await all.people.apply({ setOperator: { personId: bob.id, isOperator: false } }, event())).toBe(
      "last_operator",
    );
    expect(await suspend(ada, null)).toBe("done");
    expect(await suspend(bob)).toBe("done");
    expect(await suspend({ id: "usr_none" })).toBe("person_missing");
  });

  describe("a change of users", () => {
    test("applies a change of users as a whole or not at all, and keeps the link on a conflict", async () => {
      const ada = await all.addPerson({ email: "ada@x.org" });
      await all.addMember(ada, "member");
      const invitation = link();
      await all.people.insertLink(invitation, event());
      const useLink = { id: invitation.id, nowSeconds: now() };
      const membership = (personId: string): Membership => ({
        ...{ id: `mbr_${Bun.randomUUIDv7()}`, accountId: all.accountId, role: "member", createdAt: now() },
        ...{ personId, seesAllUsage: false },
      });
      const twin = { ...ada, id: "usr_twin", passwordHash: null };
      const before = await eventIds();
      const { people } = all;
      expect(await people.apply({ useLink, addPerson: twin, addMembership: membership("usr_twin") }, event())).toBe(
        "email_taken",
      );
      expect(await people.apply({ useLink, addMembership: membership(ada.id) }, event())).toBe("member_already");
      expect(await people.findLink(invitation.digest)).toEqual(invitation);
      expect(await people.findPerson("usr_twin")).toBeUndefined();
      expect(await eventIds()).toEqual(before);
    });

    test("applies a change by a link once for fifty concurrent uses", async () => {
      const invitation = link();
      await all.people.insertLink(invitation, event());
      const useLink = { id: invitation.id, nowSeconds: now() };
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, i) => {
          const person = { id: `usr_${i}`, email: `${i}@x.org`, name: "N", isOperator: false };
          const membership = { id: `mbr_${i}`, accountId: all.accountId, personId: person.id, createdAt: now() };
          return all.people.apply(
            {
              useLink,
              addPerson: { ...person, isEmailProven: false, suspendedAt: null, createdAt: now(), passwordHash: null },
              addMembership: { ...membership, role: "member", seesAllUsage: false },
            },
            event(),
          );
        }),
      );
      expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "link_used")).toHaveLength(49);
      expect(await all.people.listPeople(firstPage)).toHaveLength(1);
      expect(await all.people.listMembers(all.accountId, firstPage)).toHaveLength(1);
    });

    test("refuses a change by a link in the second in which the link ends", async () => {
      const invitation = link();
      await all.people.insertLink(invitation, event());
      const use = (nowSeconds: number) => all.people.apply({ useLink: { id: invitation.id, nowSeconds } }, event());
      expect(await use(invitation.expiresAt)).toBe("link_used");
      expect(await use(invitation.expiresAt - 1)).toBe("done");
      expect(await all.people.findLink(invitation.digest)).toEqual({ ...invitation, usedAt: invitation.expiresAt - 1 });
      expect(await all.people.apply({ useLink: { id: "lnk_none", nowSeconds: 0 } }, event())).toBe("link_used");
    });

    test("changes only the given user's name, password, operator right and other sessions", async () => {
      const ada = await all.addPerson({ email: "ada@x.org" });
      const bob = await all.addPerson({ email: "bob@x.org" });
      const [kept, ended, bobs] = [
        await all.startSession(ada),
        await all.startSession(ada),
        await all.startSession(bob),
      ];
      expect(await operators(all.people)).toBe(0);
      const { id: personId } = ada;
      await all.people.apply(
        {
          setName: { personId, name: "Ada" },
          setPassword: { personId, passwordHash: "hash" },
          setOperator: { personId, isOperator: true },
          endSessions: { personId, exceptId: kept.session.id },
        },
        event(),
      );
      expect(await all.people.findByEmail("ada@x.org")).toEqual({
        ...{ ...ada, name: "Ada", isOperator: true, passwordHash: "hash" },
      });
      expect(await operators(all.people)).toBe(1);
      expect((await all.sessionStore.list(personId, now())).map(({ id }) => id)).toEqual([kept.session.id]);
      expect((await all.sessionStore.list(bob.id, now())).map(({ id }) => id)).toEqual([bobs.session.id]);
      expect(ended.session.id).not.toBe(kept.session.id);
      expect(await all.people.findPerson(bob.id)).toEqual(bob);
    });

    test("rehashes a password only if its hash is still the compared one", async () => {
      const ada = await all.addPerson({ email: "ada@x.org" });
      const set = (passwordHash: string, insteadOf?: string) => {
        const setPassword = { personId: ada.id, passwordHash, ...(insteadOf === undefined ? {} : { insteadOf }) };
        return all.people.apply({ setPassword }, event());
      };
      await set("first");
      await set("second", "other");
      expect((await all.people.findByEmail("ada@x.org"))?.passwordHash).toBe("first");
      await set("second", "first");
      expect((await all.people.findByEmail("ada@x.org"))?.passwordHash).toBe("second");
    });

    test("ends open password links when a password changes", async () => {
      const ada = await all.addPerson({ email: "ada@x.org" });
      const reset = link({ purpose: "password_reset", personId: ada.id, accountId: null, email: null, role: null });
      await all.people.insertLink(reset, event());
      await all.people.apply({ setPassword: { personId: ada.id, passwordHash: "new" } }, event());
      expect(await all.people.apply({ useLink: { id: reset.id, nowSeconds: now() } }, event())).toBe("link_used");
    });

    test("audits a change of users with its actor, users and apps by their id", async () => {
      const ada = await all.addPerson({ email: "ada@x.org" });
      const by = event({ actor: { type: "person", id: ada.id } });
      await all.people.apply({ setName: { personId: ada.id, name: "Ada" } }, by);
      expect((await all.audit.list({}, { after: undefined, limit: 1 }))[0]).toEqual(by);
    });
  });

  describe("stored links", () => {
    test("replaces only unused links for the same purpose and target", async () => {
      const { people } = all;
      const elsewhere = await all.addAccount();
      const kept = [
        link({ accountId: elsewhere.id }),
        link({ email: "other@x.org" }),
        link({ purpose: "password_reset", personId: "usr_1", email: null, accountId: null, role: null }),
        link({ purpose: "password_reset", personId: "usr_2", email: null, accountId: null, role: null }),
        link({ purpose: "setup", email: null, accountId: null, role: null }),
      ];
      for (const one of kept) await people.insertLink(one, event());
      const [old, used, replacement] = [link(), link(), link()];
      await people.insertLink(used, event());
      await people.apply({ useLink: { id: used.id, nowSeconds: now() } }, event());
      await people.insertLink(old, event());
      await people.insertLink(replacement, event());
      expect(await people.findLink(old.digest)).toBeUndefined();
      for (const one of [...kept, replacement]) expect(await people.findLink(one.digest)).toEqual(one);
      expect(await people.findLink(used.digest)).toMatchObject({ usedAt: now() });
      const setup = link({ purpose: "setup", email: null, accountId: null, role: null });
      await people.insertLink(setup, event());
      expect(await people.findLink(kept[4]?.digest ?? "")).toBeUndefined();
      const reset = link({ purpose: "password_reset", personId: "usr_1", email: null, accountId: null, role: null });
      await people.insertLink(reset, event());
      expect(await people.findLink(kept[2]?.digest ?? "")).toBeUndefined();
      expect(await people.findLink(kept[3]?.digest ?? "")).toBeDefined();
    });

    test("lists open invitations by account and address, newest first, and lets them be withdrawn", async () => {
      const { people } = all;
      const elsewhere = await all.addAccount();
      const [first, ofOther] = [link({ email: "a@x.org" }), link({ accountId: elsewhere.id, email: "a@x.org" })];
      const [second, short] = [link({ email: "b@x.org" }), link({ email: "c@x.org", expiresAt: now() + 1 })];
      for (const one of [first, second, short, ofOther]) await people.insertLink(one, event());
      all.clock.advance(1_000);
      expect(await people.listInvitations(all.accountId, now())).toEqual([second, first]);
      expect(await people.findInvitations("a@x.org", now())).toEqual([ofOther, first]);
      expect(await people.deleteInvitation(first.id, elsewhere.id, event())).toBe(false);
      expect(await people.deleteInvitation(first.id, all.accountId, event())).toBe(true);
      expect(await people.deleteInvitation(first.id, all.accountId, event())).toBe(false);
      expect(await people.listInvitations(all.accountId, now())).toEqual([second]);
    });

    test("deletes links 30 days after their use or expiry", async () => {
      const { people } = all;
      const days = (count: number) => count * 86_400;
      const used = link({ expiresAt: now() + days(7) });
      const [expired, open] = [
        link({ email: "b@x.org", expiresAt: now() }),
        link({ email: "c@x.org", expiresAt: now() + days(7) }),
      ];
      for (const one of [used, expired, open]) await people.insertLink(one, event());
      await people.apply({ useLink: { id: used.id, nowSeconds: now() } }, event());
      const kept = async () => {
        const rows: { id: string }[] = await all.db`SELECT id FROM one_time_links ORDER BY id`;
        return rows.map(({ id }) => id);
      };
      const end = now();
      await people.pruneLinks(end + days(30) - 1);
      expect(await kept()).toEqual([used.id, expired.id, open.id]);
      await people.pruneLinks(end + days(30));
      expect(await kept()).toEqual([open.id]);
      await people.pruneLinks(end + days(37) - 1);
      expect(await kept()).toEqual([open.id]);
      await people.pruneLinks(end + days(37));
      expect(await kept()).toEqual([]);
    });

    test("ends the invitations of a removed or demoted member, but not of a promoted one", async () => {
      await all.addMember(await all.addPerson({ email: "o@x.org" }), "owner");
      const left = async (act: (membership: Membership) => Promise<unknown>) => {
        const person = await all.addPerson({ email: `${Bun.randomUUIDv7()}@x.org` });
        const membership = await all.addMember(person, "admin");
        const invitation = link({ createdBy: person.id, email: `${Bun.randomUUIDv7()}@x.org` });
        await all.people.insertLink(invitation, event());
        await act(membership);
        return (await all.people.findLink(invitation.digest)) !== undefined;
      };
      expect(await left(({ id }) => all.people.setRole(id, "owner", event()))).toBe(true);
      expect(await left(({ id }) => all.people.setRole(id, "member", event()))).toBe(false);
      expect(await left(({ id }) => all.people.removeMembership(id, event()))).toBe(false);
    });
  });

  test("stores that an email address is proven, returns it in each lookup, and removes it", async () => {
    const ada = await all.addPerson({ email: "a@x.org", isEmailProven: false });
    const { cookie } = await all.startSession(ada);
    const identity = { issuer: "https://idp.example", subject: "s", personId: ada.id, createdAt: now() };
    await all.people.apply({ addIdentity: identity }, event());
    const found = async () => {
      const { people } = all;
      const ways = [
        people.findPerson(ada.id),
        people.findByEmail(ada.email),
        people.findByIdentity(identity.issuer, "s"),
      ];
      const session = await all.sessions.find(cookie, { clientAddress: "::1", requestId: "r", userAgent: null });
      const [listed] = await people.listPeople(firstPage);
      return [...(await Promise.all(ways)), session?.signedIn.person, listed].map((person) => person?.isEmailProven);
    };
    expect(await found()).toEqual(Array(5).fill(false));
    for (const isEmailProven of [true, false]) {
      await all.people.apply({ setEmailProven: { personId: ada.id, isEmailProven } }, event());
      expect(await found()).toEqual(Array(5).fill(isEmailProven));
    }
  });

  test("removes a user's passkeys in one change with the rest, and no other user's", async () => {
    const [ada, bob] = [
      await all.addPerson({ email: "a@x.org", password: "a long password" }),
      await all.addPerson({ email: "b@x.org" }),
    ];
    const { people } = all;
    for (const [id, { id: personId }] of [
      ["one", ada],
      ["two", ada],
      ["three", bob],
    ] as const) {
      await people.insertPasskey(passkey(personId, { id }), event());
    }
    const removal = { removePasskeys: { personId: ada.id }, setPassword: { personId: ada.id, passwordHash: null } };
    expect(await people.apply({ ...removal, addPerson: { ...bob, id: "usr_x", passwordHash: null } }, event())).toBe(
      "email_taken",
    );
    expect(await people.listPasskeys(ada.id)).toHaveLength(2);
    expect(await people.apply(removal, event())).toBe("done");
    expect(await people.listPasskeys(ada.id)).toEqual([]);
    expect((await people.findByEmail("a@x.org"))?.passwordHash).toBeNull();
    expect(await people.listPasskeys(bob.id)).toHaveLength(1);
  });

  test("lists users by page and finds them by id, address and identity", async () => {
    const [a, b] = [
      await all.addPerson({ email: "a@x.org", isOperator: true }),
      await all.addPerson({ email: "b@x.org" }),
    ];
    expect(await all.people.listPeople({ after: undefined, limit: 1 })).toEqual([a]);
    expect(await all.people.listPeople({ after: a.id, limit: 5 })).toEqual([b]);
    const identity = { issuer: "https://idp.example", subject: "s", personId: b.id, createdAt: now() };
    await all.people.apply({ addIdentity: identity }, event());
    expect(await all.people.findByIdentity("https://idp.example", "s")).toEqual(b);
    expect(await all.people.findByIdentity("https://other.example", "s")).toBeUndefined();
    expect(await all.people.findByEmail("nobody@x.org")).toBeUndefined();
  });

  test("finds a passkey once, for its own user, and never lowers its counter", async () => {
    const [ada, bob] = [await all.addPerson({ email: "a@x.org" }), await all.addPerson({ email: "b@x.org" })];
    const { people } = all;
    expect(await people.insertPasskey(passkey(ada.id), event())).toBe(true);
    expect(await people.insertPasskey(passkey(bob.id), event())).toBe(false);
    expect(await people.findPasskey("credential")).toEqual(passkey(ada.id));
    await people.passkeyUsed("credential", 5, false, now() + 1);
    await people.passkeyUsed("credential", 4, true, now() + 2);
    const used = passkey(ada.id, { counter: 5, backedUp: false, lastUsedAt: now() + 1 });
    expect(await people.listPasskeys(ada.id)).toEqual([used]);
    expect(await people.listPasskeys(bob.id)).toEqual([]);
    expect(await people.renamePasskey("credential", bob.id, "Mine")).toBe(false);
    expect(await people.renamePasskey("credential", ada.id, "Key")).toBe(true);
    expect(await people.findPasskey("credential")).toEqual({ ...used, name: "Key" });
    expect(await people.deletePasskey("credential", bob.id, event())).toBe(false);
    expect(await people.deletePasskey("credential", ada.id, event())).toBe(true);
    expect(await people.findPasskey("credential")).toBeUndefined();
  });
});
