// The page Tiers.
import { Page } from "../../parts/page.tsx";

export function TiersPage() {
  return <Page title="Tiers">{null}</Page>;
}
