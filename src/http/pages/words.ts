// Formats times, browsers and roles for pages.
import type { Role } from "../../domain/people/role.ts";
import { type Html, html } from "./html.ts";

export const roleWords: Record<Role, string> = { owner: "Owner", admin: "Admin", member: "Member" };

const minute = 60;
const hour = 3_600;
const day = 86_400;

/** Formats how long ago `at` was. Both times are in Unix seconds. */
export function timeAgo(at: number, nowSeconds: number): Html {
  return timed(at, wordsFor(at, nowSeconds));
}

/** Formats a time in Unix seconds as a UTC date. */
export function onDay(at: number): Html {
  return timed(at, dayWords(at));
}

function wordsFor(at: number, nowSeconds: number): string {
  const age = Math.max(0, nowSeconds - at);
  if (age < 2 * minute) return "just now";
  if (age < hour) return `${Math.floor(age / minute)} minutes ago`;
  if (age < 2 * hour) return "an hour ago";
  if (age < day) return `${Math.floor(age / hour)} hours ago`;
  if (age < 2 * day) return "a day ago";
  if (age < 14 * day) return `${Math.floor(age / day)} days ago`;
  return `on ${dayWords(at)}`;
}

const months = "January February March April May June July August September October November December".split(" ");

function dayWords(at: number): string {
  const date = new Date(at * 1000);
  return `${date.getUTCDate()} ${months[date.getUTCMonth()] ?? ""} ${date.getUTCFullYear()}`;
}

function timed(at: number, words: string): Html {
  return html`<time datetime="${new Date(at * 1000).toISOString()}">${words}</time>`;
}

/** The first pattern that matches counts. Most browsers also name other browsers, for compatibility. */
const browsers: readonly [RegExp, string][] = [
  [/\bEdg(?:A|iOS)?\//, "Edge"],
  [/\b(?:OPR|OPiOS)\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const systems: readonly [RegExp, string][] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b/, "Mac"],
  [/\bLinux\b/, "Linux"],
];

/** Returns a name such as `Firefox on Linux`, derived from the untrusted `User-Agent` header. */
export function browserWords(userAgent: string): string {
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1];
  if (browser && system) return `${browser} on ${system}`;
  return browser ?? (system ? `A browser on ${system}` : "An unknown browser");
}
