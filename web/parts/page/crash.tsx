// Keeps a page that fails from taking the whole dashboard with it.
import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Empty } from "./empty.tsx";
import { Page } from "./page.tsx";

export class Crash extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <Page title="This page failed">
        <Empty
          title="It could not be shown"
          action={<Button onClick={() => window.location.reload()}>Load it again</Button>}
        >
          The dashboard is older than the server, the connection was lost, or there is a fault in it. Loading it again
          helps in most cases.
        </Empty>
      </Page>
    );
  }
}
