// The page People.
import { Page } from "../../parts/page.tsx";

export function PeoplePage() {
  return <Page title="People">{null}</Page>;
}
