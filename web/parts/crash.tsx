// Keeps a page that fails from taking the whole dashboard with it.
import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Empty } from "./empty.tsx";

export class Crash extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <Empty title="This page failed" action={<Button onClick={() => window.location.reload()}>Load it again</Button>}>
        The dashboard has a fault, or it is older than the server. Nothing was lost.
      </Empty>
    );
  }
}
