// Starts the dashboard in parts, each compiled and run as its own task, so that the browser stays responsive.
import "./parts/page/came-back.ts";
import "./components.css";
import "@mantine/notifications/styles.css";
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import "./shell/shell.css";
import "./parts/parts.css";
import "./parts/answer/answer-text.css";
import "./parts/chart/chart.css";
import "./pages/model-files/model-files.css";
import "./pages/models/models.css";
import "./pages/mcp-servers/mcp-servers.css";
import "./pages/playground/playground.css";
import "./pages/statement/statement.css";

const root = document.getElementById("root");
if (root) {
  const { rootIn } = await import("./start/root.ts");
  const { Appearance } = await import("./start/appearance.tsx");
  const { startIn } = await import("./start/dashboard.tsx");
  startIn(rootIn(root), Appearance);
}
