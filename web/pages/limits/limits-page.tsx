// The page Limits.
import { Page } from "../../parts/page.tsx";

export function LimitsPage() {
  return <Page title="Limits">{null}</Page>;
}
