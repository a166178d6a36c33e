import { expect, test } from "bun:test";
import { browserWords, onDay, timeAgo } from "./words.ts";

const now = Date.UTC(2026, 10, 21, 12) / 1000;

function wordsAgo(seconds: number): string {
  return timeAgo(now - seconds, now).text.replace(/<[^>]+>/g, "");
}

test("writes times relative to now, and as a date after two weeks", () => {
  expect(wordsAgo(0)).toBe("just now");
  expect(wordsAgo(119)).toBe("just now");
  expect(wordsAgo(120)).toBe("2 minutes ago");
  expect(wordsAgo(3_599)).toBe("59 minutes ago");
  expect(wordsAgo(3_600)).toBe("an hour ago");
  expect(wordsAgo(86_399)).toBe("23 hours ago");
  expect(wordsAgo(86_400)).toBe("a day ago");
  expect(wordsAgo(14 * 86_400 - 1)).toBe("13 days ago");
  expect(wordsAgo(14 * 86_400)).toBe("on 7 November 2026");
});

test("writes a slightly future time, from another server's clock, as now", () => {
  expect(wordsAgo(-5)).toBe("just now");
});

test("puts the exact time into the markup", () => {
  expect(onDay(now).text).toBe('<time datetime="2026-11-21T12:00:00.000Z">21 November 2026</time>');
});

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", "Firefox on Linux"],
  ["Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Windows"],
  ["Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36", "Chrome on Android"],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18 Safari/604.1",
    "Safari on iPhone",
  ],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605 Version/18 Safari/605.1", "Safari on Mac"],
  ["Something on Windows", "A browser on Windows"],
  ["Firefox/131.0", "Firefox"],
  ["<script>alert(1)</script>", "An unknown browser"],
  ["", "An unknown browser"],
])("writes %s as %s", (userAgent, words) => {
  expect(browserWords(userAgent)).toBe(words);
});
