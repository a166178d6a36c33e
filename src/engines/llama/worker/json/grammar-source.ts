// Compiles the grammars of a request, each only once even if several choices use it.
import type { LlamaGrammar, LlamaGrammarEvaluationState } from "node-llama-cpp";
import { invalid } from "../request/request-error.ts";
import type { Runtime } from "../runtime.ts";

export class GrammarSource {
  readonly #runtime: Runtime;
  readonly #compiled = new Map<string, LlamaGrammar>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Checks a grammar. Throws a RequestError that begins with `name` if llama.cpp refuses the grammar. */
  check(grammar: string, name: string): void {
    try {
      this.#compile(grammar);
    } catch {
      throw invalid(`${name}: the schema is too complex to be enforced. Simplify it.`);
    }
  }

  /** Starts an evaluation at the beginning of a grammar. */
  start(grammar: string): LlamaGrammarEvaluationState {
    const { library, model } = this.#runtime;
    return new library.LlamaGrammarEvaluationState({ model, grammar: this.#compile(grammar) });
  }

  #compile(grammar: string): LlamaGrammar {
    const known = this.#compiled.get(grammar);
    if (known !== undefined) return known;
    // `llama.createGrammar` does the same, but returns a promise.
    const compiled = new this.#runtime.library.LlamaGrammar(this.#runtime.llama, { grammar });
    this.#compiled.set(grammar, compiled);
    return compiled;
  }
}
