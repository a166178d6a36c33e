// A worker's way to the primary process: tells it things, and asks it questions.
import { Later } from "../../base/later.ts";
import type { FrameLink } from "../link/frame-link.ts";
import { type ErrorText, errorOf, type ToPrimary } from "../link/messages.ts";

/** Messages that are answered, and begin with the number of the question. */
type Question = "admit" | "peek" | "grow" | "chain" | "revision" | "tiers" | "touch";

type Asked<Name extends Question> = ToPrimary[Name] extends [question: number, ...infer Values] ? Values : never;

export class PrimaryLink {
  readonly #link: Pick<FrameLink, "send">;
  readonly #questions = new Map<number, Later<unknown>>();
  #last = 0;

  constructor(link: Pick<FrameLink, "send">) {
    this.#link = link;
  }

  tell<Name extends Exclude<keyof ToPrimary, Question>>(name: Name, ...values: ToPrimary[Name]): void {
    this.#link.send(name, ...values);
  }

  /** The number of the question that `ask` puts next. */
  get next(): number {
    return this.#last + 1;
  }

  /** Rejects with what the primary process refuses it with. Nothing settles once that is gone: then the worker ends. */
  ask<Answer, Name extends Question = Question>(name: Name, ...values: Asked<Name>): Later<Answer> {
    const number = ++this.#last;
    const answer = new Later<Answer>();
    this.#questions.set(number, answer as Later<unknown>);
    this.#link.send(name, number, ...(values as unknown[]));
    return answer;
  }

  answered(question: number, value: unknown): void {
    this.#take(question)?.resolve(value);
  }

  refused(question: number, error: ErrorText): void {
    this.#take(question)?.reject(errorOf(error));
  }

  #take(question: number): Later<unknown> | undefined {
    const answer = this.#questions.get(question);
    this.#questions.delete(question);
    return answer;
  }
}
