// The page Overview.
import { Page } from "../../parts/page.tsx";

export function OverviewPage() {
  return <Page title="Overview">{null}</Page>;
}
