// What models there are and what they cost, loaded together: a chunk for each page would share dozens of small ones with the others.

export { ModelFilesPage } from "./model-files/model-files-page.tsx";
export { ModelsPage } from "./models/models-page.tsx";
export { PricesPage } from "./models/prices/prices-page.tsx";
