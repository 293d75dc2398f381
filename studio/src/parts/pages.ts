// The pages by the first part of their address, in the order of the navigation.
export const PAGES: [string, string][] = [
  ["", "Home"],
  ["jobs", "Jobs"],
  ["models", "Models"],
  ["data", "Data"],
  ["environments", "Environments"],
  ["components", "Components"],
  ["endpoints", "Endpoints"],
  ["batch", "Batch endpoints"],
  ["schedules", "Schedules"],
  ["compute", "Compute"],
  ["workspace", "Workspace"],
];
