// Incidents as several processes see them: each begins once, ends once, and not because of a short change.
import { beforeEach, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import type { Incident, IncidentStore } from "../../domain/notifications/incident.ts";
import type { Tidings } from "../../domain/notifications/notification.ts";
import { IncidentWatch } from "./incident-watch.ts";
import { Outages } from "./outages.ts";

const silent = { info() {}, warn() {}, error() {} };

let clock: ManualClock;
let rows: Map<string, Incident>;
let received: Tidings[];
let live: string[];

beforeEach(() => {
  clock = manualClock();
  rows = new Map();
  received = [];
  live = [];
});

/** In-memory replacement of the database, which has its own tests. */
const store: IncidentStore = {
  list: async () => [...rows.values()],
  async begin(incident) {
    if (rows.has(incident.subject)) return false;
    rows.set(incident.subject, incident);
    return true;
  },
  async adopt(subject, _from, to) {
    const row = rows.get(subject);
    if (row) rows.set(subject, { ...row, replicaId: to });
  },
  end: async (subject, replicaId) => rows.get(subject)?.replicaId === replicaId && rows.delete(subject),
};

function start(replicaId: string) {
  live.push(replicaId);
  const state = { isWell: true, isKnown: true, isFailing: false, isOwn: false, isProven: false };
  const sources = {
    upstreams: () => (state.isKnown ? [{ name: "north", isWell: state.isWell }] : []),
    attempts: () => {
      const { isFailing, isOwn, isProven } = state;
      const last = { cause: "server_error", status: 500, message: "CUDA", at: 1 } as const;
      const health = { attempts: 25, failed: 25, isFailing, since: 1, last, models: ["m"] };
      return [{ upstream: "north", health, isOwn, isProven }];
    },
    nodes: () => [],
  };
  const outages = new Outages(sources, clock);
  const watch = new IncidentWatch({
    ...{ store, replicaId, clock, log: silent, everyMs: 1e9, live: () => live.map((id) => ({ id })) },
    teller: {
      async notify(tidings) {
        if (!received.some(({ once }) => once === tidings.once)) received.push(tidings);
        return true;
      },
    },
    sources: [() => outages.states()],
  });
  return {
    state,
    async look(seconds = 0) {
      for (let passed = 0; passed <= seconds; passed += 10) {
        await watch.check();
        if (passed < seconds) clock.advance(10_000);
      }
    },
    async die() {
      live = live.filter((id) => id !== replicaId);
      await watch.close();
    },
  };
}

const types = () => received.map(({ type }) => type);

test("does not report an upstream that is down or up for only a moment", async () => {
  const one = start("rep_1");
  await one.look(200);
  one.state.isWell = false;
  await one.look(20);
  one.state.isWell = true;
  await one.look(60);
  expect(types()).toEqual([]);
  one.state.isWell = false;
  await one.look(40);
  expect(types()).toEqual(["upstream.down"]);
  one.state.isWell = true;
  await one.look(20);
  one.state.isWell = false;
  await one.look(60);
  expect(types()).toEqual(["upstream.down"]);
  one.state.isWell = true;
  await one.look(40);
  expect(types()).toEqual(["upstream.down", "upstream.up"]);
  await one.die();
});

test("adopts an incident of a crashed process at the start without reporting it as ended or begun", async () => {
  const first = start("rep_1");
  first.state.isWell = false;
  await first.look(200);
  await first.die();
  const second = start("rep_2");
  // The new process first sees nothing, then a healthy state.
  second.state.isKnown = false;
  await second.look(20);
  second.state.isKnown = true;
  await second.look(20);
  second.state.isWell = false;
  await second.look(200);
  expect(types()).toEqual(["upstream.down"]);
  expect(rows.get("upstream:north")?.replicaId).toBe("rep_2");
  second.state.isWell = true;
  await second.look(60);
  expect(types()).toEqual(["upstream.down", "upstream.up"]);
  await second.die();
});

test("ends an incident when the process that saw it reaches the upstream again", async () => {
  const [one, other] = [start("rep_1"), start("rep_2")];
  one.state.isWell = false;
  for (let turns = 0; turns < 30; turns++) {
    await one.look();
    await other.look(10);
  }
  expect(types()).toEqual(["upstream.down"]);
  one.state.isWell = true;
  await one.look(60);
  expect(types()).toEqual(["upstream.down", "upstream.up"]);
  await Promise.all([one.die(), other.die()]);
});

test("ends the incident of a removed upstream without a report", async () => {
  const one = start("rep_1");
  one.state.isWell = false;
  await one.look(200);
  one.state.isKnown = false;
  await one.look(20);
  expect([types(), rows.size]).toEqual([["upstream.down"], 0]);
  await one.die();
});

test("reports a failing upstream from the process that saw it, without the server's message, and its recovery at once", async () => {
  const [first, second] = [start("rep_1"), start("rep_2")];
  Object.assign(second.state, { isFailing: true });
  await second.look();
  expect(received).toEqual([]);
  Object.assign(first.state, { isFailing: true, isOwn: true });
  await first.look();
  expect(received.map(({ type, data }) => [type, data])).toEqual([
    [
      "upstream.failing",
      {
        ...{ upstream: "north", models: ["m"], cause: "server_error", status: 500, failed: 25, attempts: 25 },
        ...{ window_seconds: 120, since: expect.any(Number) },
      },
    ],
  ]);
  Object.assign(first.state, { isOwn: false });
  await first.look();
  expect(received).toHaveLength(1);
  Object.assign(first.state, { isFailing: false, isProven: true });
  await first.look();
  expect(received.map(({ type }) => type)).toEqual(["upstream.failing", "upstream.recovered"]);
});

test("reports no recovery of a failing upstream that only gets no more requests", async () => {
  const { state, look } = start("rep_1");
  Object.assign(state, { isFailing: true, isOwn: true });
  await look();
  Object.assign(state, { isFailing: false, isOwn: false });
  await look();
  expect(received.map(({ type }) => type)).toEqual(["upstream.failing"]);
  expect(rows.size).toBe(0);
});
