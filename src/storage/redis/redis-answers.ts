// The response cache in Valkey or Redis, shared by all replicas: encrypted answers under digests, each until it
// expires.
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type {
  AnswerKey,
  AnswerStore,
  ForgottenAnswers,
  FoundAnswer,
  KeptAnswer,
} from "../../domain/models/policies/answer-store.ts";
import type { SealFor } from "../../domain/seal.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { RedisConnection, runIdOf } from "./redis-connection.ts";

export interface RedisAnswersOptions {
  /** The URL may contain a password, so it is never shown. */
  url: string;
  log: Log;
  /** Returns the seal that encrypts an account's answers. */
  sealFor: SealFor;
  /** Maximum lifetime of any answer in seconds. */
  maxSeconds: number;
  prefix?: string;
  deadlineMs?: number;
}

/** Maximum milliseconds that a request waits for the cache before it is answered without it. */
const defaultDeadlineMs = 100;
/** Maximum bytes being written to the server, because reads wait behind writes. Beyond it, answers are not stored. */
const maxUnwrittenBytes = 4 * 1024 * 1024;
/** Maximum number of accounts and models that are still to be cleared. Beyond it, the whole cache is cleared. */
const maxDue = 1_000;

/**
 * Version marks of the whole cache, the account, the model, and the account's model. Clearing replaces a mark, and an
 * answer stored under other marks is not used. If Redis evicts a mark, cleared answers stay cleared.
 */
type Marks = readonly string[];

interface Content extends Omit<KeptAnswer, "bytes"> {
  readonly text: string;
  readonly marks: Marks;
  readonly usage: TokenUsage;
}

const nothing: FoundAnswer = { answer: undefined, mark: undefined };

export class RedisAnswers implements AnswerStore {
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  readonly #sealFor: SealFor;
  readonly #maxSeconds: number;
  /** Names of marks that could not be replaced yet. They are replaced before the next read. */
  readonly #due = new Set<string>();
  #unwrittenBytes = 0;

  /** Resolves after the first attempt to connect. If that attempt fails, the connection keeps trying. */
  static async open(options: RedisAnswersOptions): Promise<RedisAnswers> {
    const answers = new RedisAnswers(options);
    await answers.#connection.start();
    return answers;
  }

  private constructor(options: RedisAnswersOptions) {
    const { url, log, prefix = "headrace:", deadlineMs = defaultDeadlineMs } = options;
    this.#prefix = `${prefix}answers:`;
    this.#sealFor = options.sealFor;
    this.#maxSeconds = options.maxSeconds;
    this.#connection = new RedisConnection({
      ...{ url, log, purpose: "response cache", deadlineMs },
      onConnect: async () => {
        await this.#forgetOlderCopy();
        await this.#forgetDue();
      },
      onAway() {},
    });
  }

  async read(answerKey: AnswerKey): Promise<FoundAnswer> {
    if (!this.#connection.isUp) return nothing;
    try {
      const names = this.#markKeys(answerKey);
      const [sealed, ...found] = (await this.#connection.send("MGET", [this.#keyOf(answerKey), ...names])) as (
        | string
        | null
      )[];
      const marks = isWhole(found) ? found : await this.#marked(names);
      if (!marks) return nothing;
      const text = typeof sealed === "string" ? this.#sealOf(answerKey).open(sealed) : undefined;
      const content = text === undefined ? undefined : (JSON.parse(text) as Content);
      if (!content || !Bun.deepEquals(content.marks, marks)) return { answer: undefined, mark: marks };
      const { text: body, usage, ignored, at, expiresAt } = content;
      return { answer: { bytes: Buffer.from(body), usage, ignored, at, expiresAt }, mark: marks };
    } catch {
      // The connection has logged the reason.
      return nothing;
    }
  }

  write(answerKey: AnswerKey, answer: KeptAnswer, mark: unknown): void {
    // If the marks are unknown, a stored answer could outlive a clearing of the cache.
    if (!Array.isArray(mark) || !this.#connection.isUp) return;
    const { bytes, usage, ignored, at, expiresAt } = answer;
    const content: Content = { text: bytes.toString(), marks: mark, usage, ignored, at, expiresAt };
    const sealed = this.#sealOf(answerKey).seal(JSON.stringify(content));
    if (this.#unwrittenBytes + sealed.length > maxUnwrittenBytes) return;
    this.#unwrittenBytes += sealed.length;
    const written = () => {
      this.#unwrittenBytes -= sealed.length;
    };
    const seconds = String(Math.max(1, expiresAt - at));
    this.#connection.send("SET", [this.#keyOf(answerKey), sealed, "EX", seconds]).then(written, written);
  }

  /** Clears answers by replacing a mark: answers that were stored under the old mark no longer match. */
  async forget({ accountId, model }: ForgottenAnswers): Promise<void> {
    const key = this.#markKey(accountId, model);
    try {
      await this.#mark(key);
    } catch (cause) {
      this.#due.add(this.#due.size < maxDue ? key : this.#markKey(undefined, undefined));
      throw new GatewayError(
        "service_unavailable",
        "The answers are kept in Redis, and that cannot be reached at the moment: they are forgotten once it can be, as long as this process runs. Retry in 5 s to be sure.",
        { cause, retryAfterSeconds: 5 },
      );
    }
  }

  /** Clears answers when the Redis process has changed, because its copy of the data may be older than a clearing. */
  async #forgetOlderCopy(): Promise<void> {
    const noted = `${this.#prefix}run`;
    const info = String(await this.#connection.send("INFO", ["server"]));
    const process = runIdOf(info);
    if (process === undefined) return;
    const [known] = (await this.#connection.send("MGET", [noted])) as (string | null)[];
    if (known === process) return;
    await this.#mark(this.#markKey(undefined, undefined));
    await this.#connection.send("SET", [noted, process]);
  }

  /** Replaces the marks that are due. A rejection closes the connection, and the next connection tries again. */
  async #forgetDue(): Promise<void> {
    for (const key of this.#due) {
      await this.#mark(key);
      this.#due.delete(key);
    }
  }

  #mark(key: string, ...options: string[]): Promise<unknown> {
    const seconds = String(this.#maxSeconds);
    return this.#connection.send("SET", [key, crypto.randomUUID(), "EX", seconds, ...options]);
  }

  /** Returns the marks with these names, and creates missing ones. Undefined if a mark is missing even then. */
  async #marked(names: readonly string[]): Promise<Marks | undefined> {
    await Promise.all(names.map((name) => this.#mark(name, "NX")));
    const marks = (await this.#connection.send("MGET", [...names])) as (string | null)[];
    return isWhole(marks) ? marks : undefined;
  }

  close(): void {
    this.#connection.close();
  }

  #keyOf({ digest }: AnswerKey): string {
    return this.#prefix + digest;
  }

  #markKeys({ accountId, model }: AnswerKey): string[] {
    return [
      this.#markKey(undefined, undefined),
      this.#markKey(accountId, undefined),
      this.#markKey(undefined, model),
      this.#markKey(accountId, model),
    ];
  }

  #markKey(accountId: string | undefined, model: string | undefined): string {
    return `${this.#prefix}forgotten:${accountId ?? ""}:${model ?? ""}`;
  }

  #sealOf({ accountId, digest }: AnswerKey) {
    return this.#sealFor(`answer ${accountId} ${digest}`);
  }
}

function isWhole(marks: readonly (string | null)[]): marks is Marks {
  return marks.every((mark) => typeof mark === "string");
}
