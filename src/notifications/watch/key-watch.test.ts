// The hourly check of keys: a scheduled rotation begins only after its notification is stored.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import type { SurveyedKey } from "../../domain/notifications/key-survey.ts";
import type { Tidings } from "../../domain/notifications/notification.ts";
import { KeyWatch } from "./key-watch.ts";

const silent = { info() {}, warn() {}, error() {} };

test("does not end a key whose notification could not be stored, and tries again at the next check", async () => {
  const clock = manualClock();
  const now = clock.nowSeconds();
  const due: SurveyedKey = {
    ...({ id: "key_1", accountId: "acct_1", name: "ci", environment: "live", expiresAt: null } as const),
    ...{ createdAt: now - 31 * 86_400, lastUsedAt: now, everyDays: 30, overlapSeconds: 3_600 },
  };
  let isStored = false;
  const told: Tidings[] = [];
  const begun: [string, number][] = [];
  const watch = new KeyWatch({
    survey: { page: async () => ({ keys: [due], next: undefined }), users: async () => [] },
    rotations: {
      async begin(id, endsAt) {
        begun.push([id, endsAt]);
        return true;
      },
    },
    teller: {
      async notify(tidings) {
        if (isStored) told.push(tidings);
        return isStored;
      },
    },
    ...{ endingModels: () => [], isFirst: () => true, clock, log: silent },
  });
  await watch.check();
  expect(begun).toEqual([]);
  isStored = true;
  clock.advance(60_000);
  await watch.check();
  expect(begun).toEqual([["key_1", now + 3_660]]);
  expect(told).toMatchObject([{ type: "key.rotation_due", data: { key_id: "key_1", ends_at: now + 3_660 } }]);
  await watch.close();
});
