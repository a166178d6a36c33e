// `npm run docs`: builds the guides as a site into dist/docs, which a server gives out below /docs.
import { ensureDependencies, ensureGuides } from "./setup.mjs";

ensureDependencies({ dev: true });
if (!ensureGuides()) process.exit(1);
