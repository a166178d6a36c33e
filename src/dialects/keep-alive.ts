// What is sent through a silence of a stream: a comment, which every reader of events passes over.

export const comment = ": keep-alive\n\n";
