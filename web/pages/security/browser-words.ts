// A browser as people call it, from the text with which it names itself.

/** First match wins: most browsers also name those that they are like. */
const browsers: readonly [RegExp, string][] = [
  [/\bEdg(?:A|iOS)?\//, "Edge"],
  [/\b(?:OPR|OPiOS)\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const systems: readonly [RegExp, string, isHeld: boolean][] = [
  [/\biPhone\b/, "iPhone", true],
  [/\biPad\b/, "iPad", true],
  [/\bAndroid\b/, "Android", true],
  [/\bCrOS\b/, "ChromeOS", false],
  [/\bWindows\b/, "Windows", false],
  [/\bMac OS X\b|\bMacintosh\b/, "Mac", false],
  [/\bLinux\b/, "Linux", false],
];

interface BrowserWords {
  /** `Firefox on Linux`. */
  name: string;
  /** Whether it is a telephone or tablet. */
  isHeld: boolean;
}

/** The text may be anything. */
export function browserWords(userAgent: string): BrowserWords {
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1];
  const [, system, isHeld = false] = systems.find(([pattern]) => pattern.test(userAgent)) ?? [];
  if (browser && system) return { name: `${browser} on ${system}`, isHeld };
  return { name: browser ?? (system ? `A browser on ${system}` : "An unknown browser"), isHeld };
}
