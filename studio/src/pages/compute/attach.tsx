// Attaching a place to run: a namespace of a Kubernetes cluster, a machine over SSH, a cluster under Slurm; making a
// cluster whose nodes come and go, and a pool that stands for several targets.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { clusters, compute_put } from "../../api/routes.ts";
import type { Cluster, Page } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Choice, Field, Form } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";

export type Kind = "Kubernetes" | "VirtualMachine" | "Slurm" | "AmlCompute" | "Pool";

type Draft = Record<string, string>;

/** What a form of its kind asks for, and the body it becomes. */
const BODIES: Record<Kind, (draft: Draft) => Record<string, unknown>> = {
  AmlCompute: (draft) => ({ computeType: "AmlCompute", properties: managed(draft) }),
  Pool: ({ targets = "", maxData }) => ({ computeType: "Pool", properties: given({ targets: words(targets), maxData }) }),
  Kubernetes: ({ cluster, namespace }) => ({ computeType: "Kubernetes", resourceId: cluster, properties: { namespace } }),
  VirtualMachine: (draft) => ({ computeType: "VirtualMachine", properties: { address: draft["address"], ...login(draft), slots: Number(draft["slots"] || 1) } }),
  Slurm: (draft) => ({
    computeType: "Slurm",
    properties: given({
      host: draft["address"],
      ...(draft["address"] ? login(draft) : {}),
      serverUrl: draft["serverUrl"],
      partition: draft["partition"],
      account: draft["account"],
      cpus: draft["cpus"] && Number(draft["cpus"]),
      memory: draft["memory"],
    }),
  }),
};

function managed(draft: Draft): Record<string, unknown> {
  const { size, least, most, idle, tier } = draft;
  const scaleSettings = { minNodeCount: Number(least || 0), maxNodeCount: Number(most || 1), nodeIdleTimeBeforeScaleDown: `PT${Number(idle || 120)}S` };
  return { vmSize: size, vmPriority: tier, scaleSettings, nodeProvider: provider(draft) };
}

/** What brings the nodes. */
function provider({ provider: type, program, serverUrl, user, by, password, privateKey, port, hosts = "", ...draft }: Draft): Record<string, unknown> {
  if (type === "command") return given({ type, program, serverUrl });
  if (type === "kubernetes") return given({ type, namespace: draft["namespace"], image: draft["image"], kubeconfig: draft["kubeconfig"], serverUrl });
  if (type !== "ssh") return { type: "process" };
  const named = hosts.split("\n").map((line) => words(line)).filter(([address]) => address !== undefined);
  const secret = by === "password" ? { password } : by === "key" ? { privateKey } : {};
  return given({ type, user, port: Number(port || 22), ...secret, hosts: named.map(([address, hostKey]) => given({ address, hostKey })) });
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

function given(map: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== undefined && value !== ""));
}

function login(draft: Draft): Record<string, unknown> {
  const { user: username, password, privateKey: privateKeyData, hostKey, port } = draft;
  return given({ sshPort: Number(port || 22), administratorAccount: given({ username, password, privateKeyData }), hostKey: hostKey?.trim() });
}

const TITLES: Record<Kind, string> = {
  Kubernetes: "Attach a Kubernetes cluster",
  VirtualMachine: "Attach a machine over SSH",
  Slurm: "Attach a Slurm cluster",
  AmlCompute: "Make a cluster",
  Pool: "Make a pool",
};

export function Attach({ kind, close, done }: { kind: Kind; close: () => void; done: () => void }) {
  const { names } = useScope();
  const [name, setName] = useState("");
  const [draft, setDraft] = useState<Draft>({ namespace: "default", port: "22", slots: "1", by: "key", size: "Standard_DS1_v2", least: "0", most: "2", idle: "120", tier: "Dedicated", provider: "process" });
  const send = async () => {
    await ask(compute_put, { ...names, name }, { body: { location: "local", properties: BODIES[kind](draft) } });
    done();
  };
  const field = (key: string) => ({ value: draft[key] ?? "", set: (value: string) => setDraft({ ...draft, [key]: value }) });
  return (
    <Form title={TITLES[kind]} does={kind === "AmlCompute" || kind === "Pool" ? "Make it" : "Attach"} send={send} close={close}>
      <Field label="Name of the target" value={name} set={setName} hint="Jobs say compute: azureml:NAME" />
      {kind === "Kubernetes" && <Kubernetes field={field} />}
      {kind === "VirtualMachine" && <Field label="Address" {...field("address")} />}
      {kind === "Slurm" && <Field label="Login node" optional {...field("address")} hint="Leave it empty where the server itself runs on the login node" />}
      {(kind === "VirtualMachine" || (kind === "Slurm" && draft["address"])) && <Login field={field} by={draft["by"] ?? "key"} />}
      {kind === "VirtualMachine" && <Field label="Jobs at a time" type="number" {...field("slots")} />}
      {kind === "AmlCompute" && (
        <>
          <Field label="Size of a node" {...field("size")} hint="peregrine compute list-sizes shows all" />
          <Field label="Nodes at least" type="number" {...field("least")} />
          <Field label="Nodes at most" type="number" {...field("most")} />
          <Field label="Seconds without work until a node goes" type="number" {...field("idle")} />
          <Choice label="Tier" {...field("tier")} options={[["Dedicated", "dedicated"], ["LowPriority", "low priority: nodes may be taken back"]]} />
          <Choice label="Nodes are" {...field("provider")} options={[["process", "parts of the server's machine"], ["ssh", "machines that are there, over SSH"], ["command", "brought by a program of yours"], ["kubernetes", "pods of a Kubernetes cluster"]]} />
          {draft["provider"] === "ssh" && (
            <>
              <Field label="Machines" lines={3} {...field("hosts")} hint="One a line: its address, then the fingerprint of its key (SHA256:…)" />
              <Login field={field} by={draft["by"] ?? "key"} many />
            </>
          )}
          {draft["provider"] === "kubernetes" && (
            <>
              <Field label="Namespace" {...field("namespace")} />
              <Field label="Image" {...field("image")} hint="What nodes are made of: it has a shell and what jobs need" />
              <Field label="Kubeconfig" optional lines={3} {...field("kubeconfig")} hint="Its text, with one context and everything in it; empty where the server runs in that cluster" />
              <Field label="Server, as nodes reach it" optional {...field("serverUrl")} hint="https://…; the address the server listens at where it is empty" />
            </>
          )}
          {draft["provider"] === "command" && (
            <>
              <Field label="Program" {...field("program")} hint="The name of a file in the folder providers of the server's home" />
              <Field label="Server, as nodes reach it" optional {...field("serverUrl")} hint="https://…; the address the server listens at where it is empty" />
            </>
          )}
        </>
      )}
      {kind === "Pool" && (
        <>
          <Field label="Targets" {...field("targets")} hint="Their names, the first choice first; a job goes to the first that is well and has room" />
          <Field label="Most data that may travel" optional {...field("maxData")} hint="As in 10GiB; a job with more stays where its data lie" />
        </>
      )}
      {kind === "Slurm" && (
        <>
          <Field label="Server, as compute nodes reach it" optional {...field("serverUrl")} hint="https://…; the address the server listens at where it is empty" />
          <Field label="Partition" optional {...field("partition")} />
          <Field label="Account" optional {...field("account")} />
          <Field label="CPUs of a job" optional type="number" {...field("cpus")} />
          <Field label="Memory of a job" optional {...field("memory")} hint="As in 16Gi" />
        </>
      )}
    </Form>
  );
}

type Bind = (key: string) => { value: string; set: (value: string) => void };

function Kubernetes({ field }: { field: Bind }) {
  const { session } = useScope();
  // Only owners of the server may list its clusters.
  const known = useData("clusters", (signal) => (session.everywhere === "owner" ? ask<Page<Cluster>>(clusters, {}, { signal }) : Promise.resolve({ value: [] })));
  const names = known.data?.value.map((one) => `${one.name}${one.answers ? "" : " (silent)"}`) ?? [];
  return (
    <>
      <Field label="Name of the cluster" {...field("cluster")} hint={names.length > 0 ? `Registered here: ${names.join(", ")}` : "One that is not registered yet is made ready with the command that follows"} />
      <Field label="Namespace" {...field("namespace")} />
    </>
  );
}

function Login({ field, by, many = false }: { field: Bind; by: string; many?: boolean }) {
  return (
    <>
      <Field label="Port" type="number" {...field("port")} />
      <Field label="User" {...field("user")} hint="Jobs run as this user" />
      <Choice label="Signs in with" {...field("by")} options={[["key", "a private key"], ["password", "a password"], ["none", "the keys of whoever runs the server"]]} />
      {by === "key" && <Field label="Private key" lines={4} {...field("privateKey")} hint="Sealed in the server's store and never shown" />}
      {by === "password" && <Field label="Password" type="password" {...field("password")} />}
      {!many && <Field label="Fingerprint of the host's key" optional {...field("hostKey")} hint="SHA256:…; without it, the checks show what the machine says and you vouch for it then" />}
    </>
  );
}
