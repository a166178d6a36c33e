// Sends mail through the operator's SMTP server.
import type { Transporter } from "nodemailer";
import { GatewayError, invalidRequest } from "../base/errors.ts";
import type { MailMessage, MailSender } from "../domain/people/mail.ts";

export interface SmtpMailerOptions {
  /**
   * `smtp://` (STARTTLS, port 587) or `smtps://` (TLS from the start, port 465), with percent-encoded user and
   * password.
   */
  url: string;
  /** An address, or a name and an address in angle brackets. */
  from: string;
  /** Milliseconds for the connection, for the greeting, and for each silence after it. */
  timeoutMs?: number;
}

/** Maximum concurrent mails. A page waits for each, and more would only show that the mail server is too slow. */
const maxAtOnce = 8;
const defaultTimeoutMs = 10_000;
/** Maximum time of a mail as a multiple of the timeout, for a slow server that keeps answering. */
const maxSilences = 3;
const addressPattern = /^[^\s@<>,;:"()]{1,64}@[^\s@<>,;:"()]{1,253}$/;
const longest = { subject: 200, text: 20_000 } as const;

export class SmtpMailer implements MailSender {
  readonly #options: SmtpMailerOptions;
  #sending = 0;

  constructor(options: SmtpMailerOptions) {
    this.#options = options;
  }

  async send(message: MailMessage): Promise<void> {
    requireSendable(message);
    if (this.#sending >= maxAtOnce) throw unsent("too_many_at_once");
    this.#sending++;
    try {
      await this.#deliver(message);
    } catch (error) {
      throw unsent(reasonOf(error));
    } finally {
      this.#sending--;
    }
  }

  /** Connects, greets and authenticates without sending a mail. Rejects as `send` does. */
  async checkConnection(): Promise<void> {
    try {
      await this.#connected((transport) => transport.verify());
    } catch (error) {
      throw unsent(reasonOf(error));
    }
  }

  async #deliver({ to, subject, text }: MailMessage): Promise<void> {
    const { from } = this.#options;
    // An address in an object is used as it is, and not parsed as a list.
    await this.#connected((transport) => transport.sendMail({ from, to: { name: "", address: to }, subject, text }));
  }

  async #connected(work: (transport: Transporter) => Promise<unknown>): Promise<void> {
    const { url, timeoutMs = defaultTimeoutMs } = this.#options;
    const { createTransport } = await import("nodemailer");
    const transport = createTransport({
      ...connectionOf(url),
      connectionTimeout: timeoutMs,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs,
      dnsTimeout: timeoutMs,
      // Messages contain only generated text: no part is read from a file or a URL.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const { promise: overdue, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject({ code: "ETIMEDOUT" }), maxSilences * timeoutMs);
    try {
      await Promise.race([work(transport), overdue]);
    } finally {
      clearTimeout(timer);
      transport.close();
    }
  }
}

/**
 * Permits unencrypted connections only to this machine. Any other server must offer STARTTLS with a valid certificate.
 */
function connectionOf(text: string) {
  const url = new URL(text);
  const secure = url.protocol === "smtps:";
  const isLocal = /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/i.test(url.hostname);
  const auth = { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) };
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
    secure,
    requireTLS: !secure && !isLocal,
    ignoreTLS: !secure && isLocal,
    ...(url.username === "" ? {} : { auth }),
  };
}

/** Throws for a line break in an address or subject, which would inject a header or a recipient. */
function requireSendable({ to, subject, text }: MailMessage): void {
  if (!addressPattern.test(to) || /\p{Cc}/u.test(to)) {
    throw invalidRequest("The e-mail address cannot be written to; check it for blanks and signs.");
  }
  if (subject.length > longest.subject || /\p{Cc}/u.test(subject) || text.length > longest.text) {
    throw new GatewayError("internal_error", "The mail could not be made.", { detail: "mail: subject or text" });
  }
}

/** Returns only the code: the server's text may quote the address or the credentials. */
function reasonOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "unknown";
  const code = "code" in error ? String(error.code) : "unknown";
  const status = "responseCode" in error && typeof error.responseCode === "number" ? ` ${error.responseCode}` : "";
  return /^[A-Z_]{1,40}$/i.test(code) ? `${code}${status}` : `unknown${status}`;
}

function unsent(reason: string): GatewayError {
  return new GatewayError("service_unavailable", "The mail could not be sent at the moment. Try again in a minute.", {
    detail: `mail: ${reason}`,
    retryAfterSeconds: 60,
  });
}
