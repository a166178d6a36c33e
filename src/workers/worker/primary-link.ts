// A worker's link to the primary process, for messages and questions.
import { Deferred } from "../../base/deferred.ts";
import type { Reservation } from "../../domain/limits/limits.ts";
import { type Figures, grantAt, grantKind, putAdmit, putUse } from "../link/figures.ts";
import type { FrameLink, Words } from "../link/frame-link.ts";
import { type AdmissionText, type ErrorText, errorOf, type ToPrimary } from "../link/messages.ts";

/** The messages with an answer. They begin with the number of the question. */
type Question = "admit" | "peek" | "grow" | "chain" | "revision" | "tiers" | "touch";

type Asked<Name extends Question> = ToPrimary[Name] extends [question: number, ...infer Values] ? Values : never;

export class PrimaryLink {
  readonly #link: Pick<FrameLink, "send"> & Figures;
  readonly #questions = new Map<number, Deferred<unknown>>();
  #last = 0;

  constructor(link: Pick<FrameLink, "send"> & Figures) {
    this.#link = link;
  }

  send<Name extends Exclude<keyof ToPrimary, Question>>(name: Name, ...values: ToPrimary[Name]): void {
    this.#link.send(name, ...values);
  }

  /** Returns the number of the next question in `ask`. */
  get next(): number {
    return this.#last + 1;
  }

  /**
   * Asks a question. Rejects with the primary process's refusal. If the primary process dies, the answer never settles,
   * and the worker ends.
   */
  ask<Answer, Name extends Question = Question>(name: Name, ...values: Asked<Name>): Deferred<Answer> {
    const number = ++this.#last;
    const answer = new Deferred<Answer>();
    this.#questions.set(number, answer as Deferred<unknown>);
    this.#link.send(name, number, ...(values as unknown[]));
    return answer;
  }

  /** Requests an admission in numbers, if `isPlain` allows. */
  admit(set: number, reservation: Reservation): Deferred<AdmissionText> {
    const number = ++this.#last;
    const answer = new Deferred<AdmissionText>();
    this.#questions.set(number, answer as Deferred<unknown>);
    putAdmit(this.#link, number, set, reservation);
    return answer;
  }

  /** Sends a message about a lease; `kind` is one of the kinds in `figures.ts` that concern a lease. */
  use(kind: number, lease: number, tokens: number, nanoUsd: number): void {
    putUse(this.#link, kind, lease, tokens, nanoUsd);
  }

  figures(kind: number, words: Words, at: number): void {
    if (kind !== grantKind) throw new Error(`The primary process sent figures of the kind ${kind}.`);
    this.answered(words.numbers[at] as number, grantAt(words, at));
  }

  answered(question: number, value: unknown): void {
    this.#take(question)?.resolve(value);
  }

  refused(question: number, error: ErrorText): void {
    this.#take(question)?.reject(errorOf(error));
  }

  #take(question: number): Deferred<unknown> | undefined {
    const answer = this.#questions.get(question);
    this.#questions.delete(question);
    return answer;
  }
}
