// The pages of models and prices, bundled together: a chunk per page would share dozens of small chunks.

export { ModelFilesPage } from "./model-files/model-files-page.tsx";
export { ModelsPage } from "./models/models-page.tsx";
export { PricesPage } from "./models/prices/prices-page.tsx";
