// Names a browser in plain words, from its User-Agent header.

/** The first match wins, because most browsers also name the browsers that they imitate. */
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
  /** A name such as `Firefox on Linux`. */
  name: string;
  /** True for a phone or tablet. */
  isHeld: boolean;
}

/** Returns a name for a browser and its system. `userAgent` is untrusted text. */
export function browserWords(userAgent: string): BrowserWords {
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1];
  const [, system, isHeld = false] = systems.find(([pattern]) => pattern.test(userAgent)) ?? [];
  if (browser && system) return { name: `${browser} on ${system}`, isHeld };
  return { name: browser ?? (system ? `A browser on ${system}` : "An unknown browser"), isHeld };
}
