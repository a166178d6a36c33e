// The pages of models and prices, in one bundle: separate bundles would each load dozens of small shared files.

export { ModelFilesPage } from "./model-files/model-files-page.tsx";
export { ModelsPage } from "./models/models-page.tsx";
export { PricesPage } from "./models/prices/prices-page.tsx";
