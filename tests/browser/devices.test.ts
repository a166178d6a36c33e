// In a real browser: a person connects a device by its code, or refuses it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { setUp } from "../support/browser.ts";
import { deviceAnswer, operator, pagesOf, startDevice, testApp } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let server: TestServer;
let at: string;

beforeAll(async () => {
  server = await startHeadrace();
  at = pagesOf(server);
  await setUp(server, { person: operator });
});

afterAll(async () => {
  leaveBrowser();
  await server[Symbol.asyncDispose]();
});

async function signIn(visitor: Visitor): Promise<void> {
  await visitor.fill({ "E-mail address": operator.email, Password: operator.password });
  await visitor.press("Sign in");
}

test("connects a device by a typed code after sign-in, and issues its tokens", async () => {
  const device = await startDevice(server);
  await using ada = await openVisitor({ at, size: phone });
  await ada.go("/device");
  await signIn(ada);
  await ada.page.waitForURL("**/device");
  await look(ada, "device", { referrerPolicy: "no-referrer" });
  await ada.fill({ Code: "BCDF-GHJK" });
  await ada.press("Continue");
  await look(ada, "device-wrong-code", { status: 400 });
  await ada.fill({ Code: ` ${device.userCode.toLowerCase().replace("-", " ")} ` });
  await ada.press("Continue");
  await look(ada, "device-confirm", { referrerPolicy: "no-referrer" });
  await ada.press("Allow");
  await ada.page.waitForURL("**/device/approved");
  await look(ada, "device-approved");
  expect(await deviceAnswer(server, device)).toMatchObject({ token_type: "Bearer" });
});

test("asks for consent even with the code in the address, and returns a denial to the device", async () => {
  const app = await testApp(server, {
    redirect_uris: ["https://tv.example/callback"],
    name: "Television",
    type: "public",
  });
  const device = await startDevice(server, app);
  await using ada = await openVisitor({ at });
  await ada.go(device.complete);
  await signIn(ada);
  await ada.page.waitForURL(`**${device.complete}`);
  expect(await ada.page.getByLabel("Code").inputValue()).toBe(device.userCode);
  await ada.press("Continue");
  await look(ada, "device-confirm-app");
  await ada.press("Deny");
  await ada.page.waitForURL("**/device/denied");
  await look(ada, "device-denied");
  expect(await deviceAnswer(server, device, app)).toMatchObject({ error: "access_denied" });
});
