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
  /** Milliseconds to wait for the connection, for the greeting, and for each later response. */
  timeoutMs?: number;
}

/** Maximum concurrent mails. A user waits for each of them. */
const maxAtOnce = 8;
const defaultTimeoutMs = 10_000;
/** Maximum total time of a mail, as a multiple of `timeoutMs`. */
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

  /** Connects, greets and authenticates without sending a mail. Rejects if the server cannot be used. */
  async checkConnection(): Promise<void> {
    try {
      await this.#connected((transport) => transport.verify());
    } catch (error) {
      throw unsent(reasonOf(error));
    }
  }

  async #deliver({ to, subject, text }: MailMessage): Promise<void> {
    const { from } = this.#options;
    // In this object form, the address is used unchanged and not parsed as a list.
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
      // Mails contain only generated text, so nothing may be read from files or URLs.
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
 * Returns the connection settings. Unencrypted connections are allowed only to this machine; other servers must offer
 * STARTTLS with a valid certificate.
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

/** Throws if the address or subject has a control character: a line break could add a header or a recipient. */
function requireSendable({ to, subject, text }: MailMessage): void {
  if (!addressPattern.test(to) || /\p{Cc}/u.test(to)) {
    throw invalidRequest("The e-mail address cannot be written to; check it for blanks and signs.");
  }
  if (subject.length > longest.subject || /\p{Cc}/u.test(subject) || text.length > longest.text) {
    throw new GatewayError("internal_error", "The mail could not be made.", { detail: "mail: subject or text" });
  }
}

/** Returns only the code of an error: the server's text may contain the address or the credentials. */
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
