// `npm run build`: builds the dashboard where its sources have changed, as `npm start` does by itself, and, where development
// packages are installed, the guides: who only runs Headrace fetches nothing for them.
import { canBuildGuides, ensureDashboard, ensureDependencies, ensureGuides } from "./setup.mjs";

ensureDependencies();
ensureDashboard();
if (canBuildGuides() && !ensureGuides()) process.exit(1);
