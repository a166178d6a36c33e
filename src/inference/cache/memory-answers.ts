// A response cache in the memory of this process. Its size limit applies to all accounts together.
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type {
  AnswerKey,
  AnswerStore,
  ForgottenAnswers,
  FoundAnswer,
  KeptAnswer,
} from "../../domain/models/policies/answer-store.ts";

interface Entry {
  readonly answer: KeptAnswer;
  readonly model: string;
}

/** The cached answers of one account, least recently used first. */
class AccountAnswers {
  readonly entries = new Map<string, Entry>();
  bytes = 0;
}

/** Estimated bytes of an entry, not counting the answer itself. */
const entryBytes = 512;
/** Number of entries that are checked for expiry at each write. */
const stepsPerWrite = 16;

/**
 * Stores answers in memory. If the cache is full, the account that uses the most memory loses its least recently used
 * answer. So an account cannot displace the answers of accounts that store less.
 */
export class MemoryAnswers implements AnswerStore {
  readonly #clock: Pick<Clock, "nowSeconds">;
  readonly #maxBytes: number;
  readonly #accounts = new Map<string, AccountAnswers>();
  #bytes = 0;
  /** Incremented by each `forget`. The answer to a request that began before `forget` is then not stored. */
  #mark = 0;
  #inspected: Iterator<[string, AccountAnswers]> | undefined;
  #inspectedAccount: { of: AccountAnswers; accountId: string; entries: Iterator<[string, Entry]> } | undefined;

  constructor({ clock, maxBytes }: { clock: Pick<Clock, "nowSeconds">; maxBytes: number }) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  read({ accountId, digest }: AnswerKey): FoundAnswer {
    const account = this.#accounts.get(accountId);
    const entry = account?.entries.get(digest);
    const mark = this.#mark;
    if (!account || !entry) return { answer: undefined, mark };
    if (entry.answer.expiresAt <= this.#clock.nowSeconds()) {
      this.#drop(accountId, account, digest, entry);
      return { answer: undefined, mark };
    }
    account.entries.delete(digest);
    account.entries.set(digest, entry);
    return { answer: entry.answer, mark };
  }

  write({ accountId, digest, model }: AnswerKey, answer: KeptAnswer, mark: unknown): void {
    const bytes = bytesOf(answer);
    if (mark !== this.#mark || bytes > this.#maxBytes) return;
    const account = this.#accounts.get(accountId) ?? new AccountAnswers();
    const before = account.entries.get(digest);
    if (before) this.#drop(accountId, account, digest, before);
    this.#accounts.set(accountId, account);
    account.entries.set(digest, { answer, model });
    this.#count(account, bytes);
    this.#dropExpired();
    while (this.#bytes > this.#maxBytes) this.#dropOldest();
  }

  async forget({ accountId, model }: ForgottenAnswers): Promise<void> {
    this.#mark++;
    for (const [id, account] of this.#accounts) {
      if (accountId !== undefined && id !== accountId) continue;
      for (const [digest, entry] of account.entries) {
        if (model === undefined || entry.model === model) this.#drop(id, account, digest, entry);
      }
    }
  }

  close(): void {
    bufferedBytes.kept(-this.#bytes);
    this.#bytes = 0;
    this.#accounts.clear();
  }

  #dropOldest(): void {
    let largest: [string, AccountAnswers] | undefined;
    for (const one of this.#accounts) if (!largest || one[1].bytes > largest[1].bytes) largest = one;
    if (!largest) return;
    const [accountId, account] = largest;
    for (const [digest, entry] of account.entries) {
      this.#drop(accountId, account, digest, entry);
      return;
    }
  }

  #dropExpired(): void {
    const now = this.#clock.nowSeconds();
    for (let step = 0; step < stepsPerWrite; step++) {
      const into = this.#inspectedAccount;
      const next = into?.entries.next();
      if (into && next && !next.done) {
        const [digest, entry] = next.value;
        if (entry.answer.expiresAt <= now) this.#drop(into.accountId, into.of, digest, entry);
        continue;
      }
      this.#inspected ??= this.#accounts.entries();
      const account = this.#inspected.next();
      if (account.done) this.#inspected = undefined;
      this.#inspectedAccount = account.done
        ? undefined
        : { accountId: account.value[0], of: account.value[1], entries: account.value[1].entries.entries() };
    }
  }

  #drop(accountId: string, account: AccountAnswers, digest: string, { answer }: Entry): void {
    account.entries.delete(digest);
    this.#count(account, -bytesOf(answer));
    if (account.entries.size === 0) this.#accounts.delete(accountId);
  }

  #count(account: AccountAnswers, bytes: number): void {
    account.bytes += bytes;
    this.#bytes += bytes;
    bufferedBytes.kept(bytes);
  }
}

function bytesOf({ bytes, ignored }: KeptAnswer): number {
  return ignored.reduce((sum, name) => sum + name.length, bytes.length + entryBytes);
}
