// Restricts a page to operators; other users see an explanation.
import type { ComponentType } from "react";
import { useSession } from "../../api/session.tsx";
import { Empty } from "./empty.tsx";
import { LinkButton } from "./links.tsx";
import { Page } from "./page.tsx";

/** Wraps a page for operators, which is not even rendered for others. */
export function operatorsOnly(title: string, Content: ComponentType): ComponentType {
  return function OperatorsPage() {
    const { isOperator } = useSession();
    if (isOperator) return <Content />;
    return (
      <Page title={title}>
        <Empty
          title="Only for operators of this server"
          action={
            <LinkButton href="/" mt="xs">
              Go to Overview
            </LinkButton>
          }
        >
          This page covers all accounts of the server. You find your own account under Settings. An operator can give
          you access under Administration, People.
        </Empty>
      </Page>
    );
  };
}
