// Mail through a real SMTP server on loopback: what arrives, what is refused, what failure looks like.
import { afterEach, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { withinMs } from "../../tests/support/long.ts";
import { GatewayError } from "../base/errors.ts";
import { SmtpMailer } from "./smtp-mailer.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Received {
  recipients: string[];
  user: string | undefined;
  secure: boolean;
  text: string;
}

async function startServer(options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  const server = new SMTPServer({
    logger: false,
    authOptional: true,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      password === "p@ss/word" ? done(null, { user: username ?? "" }) : done(new Error(`No: ${password}`)),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const recipients = session.envelope.rcptTo.map(({ address }) => address);
        const text = Buffer.concat(chunks).toString();
        received.push({ recipients, user: session.user, secure: session.secure, text });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => undefined);
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, "127.0.0.1", () => {
      const address = listening.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  closing.push(() => server.close());
  return { port, received };
}

/** Accepts connections and says what it is told to. */
async function startRaw(greeting: string) {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    if (greeting !== "") socket.write(greeting);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

const message = { to: "ada@example.com", subject: "Grüße: your invitation", text: "Hello,\nhttps://h/x?y=1\n" };
const from = "Headrace <headrace@example.com>";

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof GatewayError) return error;
  throw new Error(`no GatewayError, but ${String(error)}`);
}

describe("a mail message", () => {
  test("sends plain text to one address from the sender, with the decoded password", async () => {
    const { port, received } = await startServer();
    await new SmtpMailer({ url: `smtp://me%40x:p%40ss%2Fword@127.0.0.1:${port}`, from }).send(message);
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ recipients: ["ada@example.com"], user: "me@x" });
    const text = received[0]?.text ?? "";
    expect(text).toContain("From: Headrace <headrace@example.com>");
    expect(text).toContain("To: ada@example.com");
    expect(text).toMatch(/^Content-Type: text\/plain; charset=utf-8/m);
    expect(text).toContain("https://h/x?y=1");
    expect(text).not.toContain("multipart");
  });

  test.each([
    "ada@example.com\r\nBcc: eve@example.com",
    "ada@example.com, eve@example.com",
    "ada@example.com>\u0000",
    "Ada <ada@example.com>",
    "ada",
    "",
  ])("refuses a message to %p before sending anything", async (to) => {
    const { port, received } = await startServer();
    const error = await refusal(new SmtpMailer({ url: `smtp://127.0.0.1:${port}`, from }).send({ ...message, to }));
    expect(error.code).toBe("invalid_request");
    expect(received).toEqual([]);
  });

  test("refuses a line break in the subject", async () => {
    const { port, received } = await startServer();
    const mailer = new SmtpMailer({ url: `smtp://127.0.0.1:${port}`, from });
    const error = await refusal(mailer.send({ ...message, subject: "A\r\nBcc: eve@example.com" }));
    expect(error.code).toBe("internal_error");
    expect(received).toEqual([]);
  });
});

describe("failures of the mail server", () => {
  test("reports a wrong password as service_unavailable with its code and without the secret", async () => {
    const { port } = await startServer({ authOptional: false });
    const error = await refusal(new SmtpMailer({ url: `smtp://me:canary-pw@127.0.0.1:${port}`, from }).send(message));
    expect(error).toMatchObject({ code: "service_unavailable", detail: "mail: EAUTH 535" });
    expect(Bun.inspect(error)).not.toContain("canary-pw");
  });

  test("reports a refused recipient as service_unavailable with its code", async () => {
    const { port } = await startServer({ onRcptTo: (_address, _session, done) => done(new Error("no such user")) });
    const error = await refusal(new SmtpMailer({ url: `smtp://127.0.0.1:${port}`, from }).send(message));
    expect(error).toMatchObject({ code: "service_unavailable", detail: "mail: EENVELOPE 550" });
  });

  test("reports an unreachable mail server as service_unavailable with its code", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    await new Promise((resolve) => server.close(resolve));
    const error = await refusal(new SmtpMailer({ url: `smtp://127.0.0.1:${port}`, from }).send(message));
    expect(error.code).toBe("service_unavailable");
    expect(error.detail).toMatch(/^mail: E[A-Z]+$/);
  });

  test.each(["", "220 hello\r\n"])("times out a mail server that only says %p", async (greeting) => {
    const port = await startRaw(greeting);
    const started = performance.now();
    const mailer = new SmtpMailer({ url: `smtp://127.0.0.1:${port}`, from, timeoutMs: 100 });
    expect(await refusal(mailer.send(message))).toMatchObject({ code: "service_unavailable" });
    expect(performance.now() - started).toBeLessThan(withinMs(1_000));
  });

  test("refuses the ninth concurrent message, and frees slots again", async () => {
    const port = await startRaw("");
    const mailer = new SmtpMailer({ url: `smtp://127.0.0.1:${port}`, from, timeoutMs: 200 });
    const waiting = Array.from({ length: 8 }, () => refusal(mailer.send(message)));
    expect((await refusal(mailer.send(message))).detail).toBe("mail: too_many_at_once");
    await Promise.all(waiting);
    expect((await refusal(mailer.send(message))).detail).not.toBe("mail: too_many_at_once");
  });
});

describe("encryption of mail", () => {
  test("requires STARTTLS for smtp:// beyond this machine, and sends nothing without it", async () => {
    const { port, received } = await startServer({ disabledCommands: ["STARTTLS"] });
    // The same machine by an address that is not known to be it.
    const error = await refusal(new SmtpMailer({ url: `smtp://me:p@[::ffff:127.0.0.1]:${port}`, from }).send(message));
    expect(error.detail).toMatch(/^mail: (ETLS|ESOCKET)/);
    expect(received).toEqual([]);
  });

  test("requires a certificate for the mail server's name", async () => {
    const { port, received } = await startServer({ secure: true });
    const error = await refusal(new SmtpMailer({ url: `smtps://127.0.0.1:${port}`, from }).send(message));
    expect(error.code).toBe("service_unavailable");
    expect(received).toEqual([]);
  });
});
