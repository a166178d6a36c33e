// The model catalog with batch prices.
import type { Model } from "../domain/models/model.ts";
import type { InferenceDeps } from "../inference/call.ts";

type CatalogPart = InferenceDeps["catalog"];

export class BatchCatalog implements CatalogPart {
  readonly #catalog: CatalogPart;
  readonly #factor: () => number;
  /** Caches the batch-priced model of each catalog model, so that its prices are computed once. */
  #priced = new WeakMap<Model, Model>();
  #pricedBy = 1;

  /**
   * `factor` returns the price factor of batches. Each price calculation calls `factor`, because a reload of the
   * configuration may change the factor.
   */
  constructor(catalog: CatalogPart, factor: () => number) {
    this.#catalog = catalog;
    this.#factor = factor;
  }

  find(name: string): Model | undefined {
    return this.#ofBatches(this.#catalog.find(name));
  }

  get(id: string): Model | undefined {
    return this.#ofBatches(this.#catalog.get(id));
  }

  whenComplete(): Promise<void> {
    return this.#catalog.whenComplete();
  }

  #ofBatches(model: Model | undefined): Model | undefined {
    const factor = this.#factor();
    if (!model?.price || factor === 1) return model;
    if (factor !== this.#pricedBy) {
      this.#priced = new WeakMap();
      this.#pricedBy = factor;
    }
    let priced = this.#priced.get(model);
    if (!priced) {
      const { price } = model;
      // A price variant without conditions applies to every request.
      priced = { ...model, price: { ...price, variants: [...(price.variants ?? []), { factor }] } };
      this.#priced.set(model, priced);
    }
    return priced;
  }
}
