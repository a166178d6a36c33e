import { expect, test } from "bun:test";
import { notificationOf } from "../../domain/notifications/notification.ts";
import { noticeMail } from "./notification-mail.ts";

test.each([
  [119, "119 s"],
  [120, "2 minutes"],
  [3_600, "60 minutes"],
])("writes an outage of %i seconds as %s", (seconds, text) => {
  const about = { accountId: null, environment: null, once: "1" };
  const notice = notificationOf(
    { ...about, type: "upstream.up", data: { upstream: "north", down_seconds: seconds } },
    1,
  );
  const mail = noticeMail("ada@example.com", notice, "https://gateway.example");
  expect(mail.subject).toBe("Headrace: The upstream north is up again");
  expect(mail.text).toStartWith(`The upstream north answers again, after ${text}.`);
});
