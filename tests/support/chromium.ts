// A real Chromium, one for all tests, and visitors in it, each with cookies of their own, whose trouble is noted.
import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page, type Response } from "playwright-core";
import { withinMs } from "./long.ts";

export const phone = { width: 390, height: 844 };
export const desktop = { width: 1280, height: 900 };

/** A certificate for this machine that the browser takes for a good one, as passkeys need. */
export const certificate = newCertificate();

let running: Promise<Browser> | undefined;
let idle: ReturnType<typeof setTimeout> | undefined;

const launch = {
  executablePath: "/usr/bin/chromium-headless-shell",
  args: [
    ...["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
    ...["--disable-component-update", "--disable-sync", `--ignore-certificate-errors-spki-list=${certificate.spki}`],
    // A name that is not loopback, as a server in a home network has one.
    "--host-resolver-rules=MAP headrace.test 127.0.0.1",
  ],
};

export function openBrowser(): Promise<Browser> {
  clearTimeout(idle);
  running ??= chromium.launch(launch).then(keepAwake);
  return running;
}

/**
 * Once in some thousand tests a command was not answered until the test ran out of time, whichever it was. A write that waits
 * in Bun's buffer for the pipe to the browser would explain it, which was not proven; then another command takes it along.
 */
async function keepAwake(browser: Browser): Promise<Browser> {
  const session = await browser.newBrowserCDPSession();
  const timer = setInterval(() => void session.send("Browser.getVersion").catch(() => clearInterval(timer)), 500);
  timer.unref();
  browser.on("disconnected", () => clearInterval(timer));
  return browser;
}

/** One of its own, whose scroll bars take room beside what they scroll, as they do on most desktops. */
export function openBrowserWithScrollBars(): Promise<Browser> {
  return chromium.launch({ ...launch, ignoreDefaultArgs: ["--hide-scrollbars"] }).then(keepAwake);
}

/** The next file of tests begins at once and keeps it; after the last it ends. */
export function leaveBrowser(): void {
  idle = setTimeout(() => {
    void running?.then((browser) => browser.close());
    running = undefined;
  }, 1_000);
}

export interface VisitorOptions {
  /** Where the server is: pages of other hosts are trouble. */
  at: string;
  size?: typeof phone;
  scripts?: boolean;
  /** Hosts besides, such as that of an app. */
  others?: readonly string[];
}

/** Somebody at a browser. */
export interface Visitor extends AsyncDisposable {
  page: Page;
  context: BrowserContext;
  /** Whether pages may run any. */
  scripts: boolean;
  /** What went wrong in the browser so far; empty is the only good value. */
  trouble: string[];
  /** The answer that the page of now came with. */
  answer(): Response;
  go(path: string): Promise<void>;
  /** Fills in fields by their labels. */
  fill(fields: Readonly<Record<string, string>>): Promise<void>;
  press(button: string): Promise<void>;
  heading(): Promise<string>;
  /** Path and query of the page of now. */
  path(): string;
  text(): Promise<string>;
}

export async function openVisitor({
  at,
  size = desktop,
  scripts = true,
  others = [],
}: VisitorOptions): Promise<Visitor> {
  const browser = await openBrowser();
  const context = await browser.newContext({
    ...{ viewport: size, javaScriptEnabled: scripts, serviceWorkers: "block" },
    // Dialogs do not glide in for somebody who wants it so: nobody waits for it.
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(withinMs(10_000));
  const page = await context.newPage();
  const trouble: string[] = [];
  const hosts = new Set([new URL(at).host, ...others]);
  let answer: Response | undefined;
  page.on("response", (response) => {
    const request = response.request();
    const isPage = request.isNavigationRequest() && request.frame() === page.mainFrame();
    if (isPage && (response.status() < 300 || response.status() >= 400)) answer = response;
    if (!isPage && response.status() >= 400) trouble.push(`${response.status()} for ${response.url()}`);
  });
  page.on("console", (message) => {
    // That a page itself came with an error's status is for the test to say; Chromium logs it as well.
    const isStatusOfPage =
      message.text().startsWith("Failed to load resource") && message.location().url === answer?.url();
    // It looks at a form while it is parsed, and takes what comes later for another one; page-checks.ts looks at the whole.
    const isOfHalfAForm = message
      .text()
      .startsWith("[DOM] Password forms should have (optionally hidden) username fields");
    // `info` is no complaint: that focus stays where a fast visitor has put it already, for one.
    if (message.type() === "info" || isStatusOfPage || isOfHalfAForm) return;
    trouble.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => trouble.push(`script: ${error.message}`));
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText;
    // A picture that was still on its way when the visitor left its page.
    if (reason !== "net::ERR_ABORTED") trouble.push(`failed: ${request.url()} ${reason}`);
  });
  page.on("request", (request) => {
    if (!hosts.has(new URL(request.url()).host)) trouble.push(`elsewhere: ${request.url()}`);
  });
  return {
    ...{ page, context, scripts, trouble },
    answer() {
      if (!answer) throw new Error("No page was visited yet.");
      return answer;
    },
    go: async (path) => void (await page.goto(new URL(path, at).href)),
    async fill(fields) {
      for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value);
    },
    press: (button) => page.getByRole("button", { name: button, exact: true }).click(),
    heading: async () => (await page.locator("h1").textContent())?.trim() ?? "",
    path() {
      const { pathname, search } = new URL(page.url());
      return pathname + search;
    },
    text: async () => (await page.locator("body").textContent()) ?? "",
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** The cookies of the server, by name. */
export async function cookiesOf({ context }: Visitor) {
  return new Map((await context.cookies()).map((cookie) => [cookie.name, cookie]));
}

function newCertificate(): { key: string; cert: string; spki: string } {
  const directory = mkdtempSync(join(tmpdir(), "headrace-certificate-"));
  const [keyFile, certFile] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", keyFile, "-out", certFile], {
    stdio: "ignore",
  });
  const [key, cert] = [readFileSync(keyFile, "utf8"), readFileSync(certFile, "utf8")];
  rmSync(directory, { recursive: true });
  const publicKey = new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" });
  return { key, cert, spki: createHash("sha256").update(publicKey).digest("base64") };
}
