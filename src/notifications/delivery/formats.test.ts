// Tests the bodies of webhooks for Slack, Teams, PagerDuty and Alertmanager.
import { describe, expect, test } from "bun:test";
import { type Notification, notificationOf } from "../../domain/notifications/notification.ts";
import { bodyIn } from "./formats.ts";

const options = { origin: "https://ai.example.com", routingKey: "R0UT1NG" };
const at = 1_795_730_511;
const owner = { accountId: null, environment: null, once: "1" } as const;
const down = notificationOf({ ...owner, type: "upstream.down", data: { upstream: "gpu<1>_a", since: at - 40 } }, at);
const up = notificationOf({ ...owner, type: "upstream.up", data: { upstream: "gpu<1>_a", down_seconds: 90 } }, at + 50);
const quota = notificationOf(
  {
    ...{ ...owner, type: "quota.threshold" },
    data: {
      ...{ owner: "key", owner_id: "key_1", environment: "live", unit: "USD", limit: 5, used: 5, threshold: 100 },
      window: { starts_at: at, ends_at: at + 9 },
    },
  },
  at,
);
const written = (format: Parameters<typeof bodyIn>[0], notice: Notification) =>
  JSON.parse(bodyIn(format, notice, options));

describe("webhook formats", () => {
  test("writes the type, the time and the data for Standard Webhooks", () => {
    expect(written("standard", down)).toEqual({
      type: "upstream.down",
      timestamp: "2026-11-26T22:01:51.000Z",
      data: down.data,
    });
  });

  test("escapes names in a Slack message, so that they add no links or mentions", () => {
    const { text } = written("slack", down);
    expect(text).toStartWith("*The upstream gpu&lt;1&gt;_a is down*\n");
    expect(text).toEndWith("<https://ai.example.com|Headrace>");
  });

  test("writes an adaptive card for Teams without markup from names", () => {
    const [{ contentType, content }] = written("teams", down).attachments;
    expect(contentType).toBe("application/vnd.microsoft.card.adaptive");
    expect(content.body[0].text).toBe("The upstream gpu\\<1\\>\\_a is down");
  });

  test("resolves the PagerDuty alert that the beginning of the incident triggered", () => {
    const [triggered, resolved] = [written("pagerduty", down), written("pagerduty", up)];
    expect(triggered).toMatchObject({
      routing_key: "R0UT1NG",
      event_action: "trigger",
      payload: { severity: "critical" },
    });
    expect(resolved).toMatchObject({ event_action: "resolve", dedup_key: triggered.dedup_key });
    expect(written("pagerduty", quota).payload.severity).toBe("error");
  });

  test("keeps events without an end apart, so that 100 % of a quota does not merge with 80 %", () => {
    const earlier = { ...quota, id: "evt_1", data: { ...quota.data, threshold: 80 } } as Notification;
    const keys = [earlier, quota].map((notice) => written("pagerduty", notice).dedup_key);
    expect(keys).toEqual([earlier.id, quota.id]);
    const labels = [earlier, quota].map((notice) => written("alertmanager", notice)[0].labels);
    expect(labels.map(({ unit, threshold }) => [unit, threshold])).toEqual([
      ["USD", "80"],
      ["USD", "100"],
    ]);
    const ending = (days: number) =>
      notificationOf({ ...owner, type: "model.shutdown", data: { model: "m", shutdown_date: "2026-12-11", days } }, at);
    expect([30, 1].map((days) => written("alertmanager", ending(days))[0].labels.days)).toEqual(["30", "1"]);
  });

  test("gives each quota and each request for more its own Alertmanager labels", () => {
    const quotaWith = (data: object) => ({ ...quota, data: { ...quota.data, ...data } }) as Notification;
    const asked = (request_id: string) =>
      notificationOf(
        {
          ...{ ...owner, type: "limit.requested" },
          data: {
            ...{ request_id, account_id: "acct_1", person_id: "usr_1", email: "ada@example.test", owner: "account" },
            ...{ environment: "live", unit: "usd", per: "day", amount: 5, reason: "evaluation" },
          },
        },
        at,
      );
    const events = [
      ...[quota, quotaWith({ environment: "test" }), quotaWith({ per: "day" })],
      ...[quotaWith({ per: "day", tag: "user:ann" }), quotaWith({ per: "day", models: ["m-*"] })],
      ...[asked("lrq_1"), asked("lrq_2")],
    ];
    const labels = events.map((notice) => JSON.stringify(written("alertmanager", notice)[0].labels));
    expect(new Set(labels).size).toBe(events.length);
  });

  test("ends the Alertmanager alert of an incident by the same labels", () => {
    const [[firing], [ended]] = [written("alertmanager", down), written("alertmanager", up)];
    expect(firing.labels).toEqual({
      alertname: "upstream.down",
      service: "headrace",
      subject: "gpu<1>_a",
      severity: "critical",
    });
    expect(ended.labels).toEqual(firing.labels);
    expect(Date.parse(firing.endsAt) - Date.parse(firing.startsAt)).toBe(7 * 86_400_000);
    expect(ended.endsAt).toBe(new Date((at + 50) * 1_000).toISOString());
    const [event] = written("alertmanager", quota);
    expect(Date.parse(event.endsAt) - Date.parse(event.startsAt)).toBe(3_600_000);
  });
});
