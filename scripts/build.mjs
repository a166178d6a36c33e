// `npm run build`: builds the dashboard where its sources have changed; `npm start` does so by itself.
import { ensureDashboard, ensureDependencies } from "./setup.mjs";

ensureDependencies();
ensureDashboard();
