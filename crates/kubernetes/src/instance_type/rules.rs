//! What the cluster checks of an instance type, in its own language (CEL), one message for each mistake.
//!
//! A rule is written so that it only fails for its own reason: an amount that cannot be read is told once, by
//! [`amounts_parse`], and not again by those that compare it.

use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};

/// The most names in a list of amounts. The cluster wants to know, to bound what a check may cost.
const MOST: u32 = 12;

/// Amounts by name: whole numbers or text, or `null` for none.
pub(super) fn amounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MOST,
        "additionalProperties": { "x-kubernetes-int-or-string": true, "nullable": true },
    })
}

/// `name` is there and more than nothing.
pub(super) fn required(list: &str, name: &str) -> Rule {
    let value = format!("self['{name}']");
    let more = format!(
        "type({value}) == int ? {value} > 0 : (!isQuantity({value}) || quantity({value}).isGreaterThan(quantity('0')))"
    );
    let such_as = if name == "cpu" { "`500m` or `2`" } else { "`2Gi`" };
    let message = format!("`{list}.{name}` is required and must be more than 0, such as {such_as}");
    Rule::new(format!("'{name}' in self && {value} != null && ({more})")).message(&*message)
}

/// Devices are asked for by their limit alone.
pub(super) fn only_plain() -> Rule {
    Rule::new("self.all(name, name in ['cpu', 'memory', 'ephemeral-storage'])").message(
        "`requests` may name `cpu`, `memory` and `ephemeral-storage`; GPUs and other devices belong into `limits` only",
    )
}

pub(super) fn names_known() -> Rule {
    Rule::new(
        "self.all(name, name in ['cpu', 'memory', 'ephemeral-storage'] || name.contains('/') || \
         name.startsWith('hugepages-'))",
    )
    .message(
        "`limits` may name `cpu`, `memory`, `ephemeral-storage`, huge pages, and devices with their domain, such as \
         `nvidia.com/gpu`",
    )
}

/// Every amount is one that Kubernetes can read.
pub(super) fn amounts_parse(list: &str) -> Rule {
    let message = format!("an amount in `{list}` cannot be read; write `500m`, `2`, `1500Mi` or `2Gi`");
    Rule::new("self.all(name, self[name] == null || type(self[name]) == int || isQuantity(self[name]))")
        .message(&*message)
}

pub(super) fn devices_whole() -> Rule {
    Rule::new(
        "self.all(name, !name.contains('/') || self[name] == null || (type(self[name]) == int ? self[name] >= 0 : \
         (isQuantity(self[name]) && quantity(self[name]).isInteger() && !self[name].startsWith('-'))))",
    )
    .message("GPUs and other devices are whole numbers: `nvidia.com/gpu: 1`; `0` or `null` means none")
}

/// The limit of `name` is not below what is asked for.
pub(super) fn not_below(name: &str) -> Rule {
    let at = |list: &str| format!("self.{list}['{name}']");
    let (asked, limit) = (at("requests"), at("limits"));
    let there = |list: &str| format!("'{name}' in self.{list} && {} != null", at(list));
    let readable = |value: &str| format!("(type({value}) == int || isQuantity({value}))");
    let read = |value: &str| format!("quantity(string({value}))");
    Rule::new(format!(
        "!({} && {} && {} && {}) || {}.compareTo({}) >= 0",
        there("requests"),
        there("limits"),
        readable(&asked),
        readable(&limit),
        read(&limit),
        read(&asked)
    ))
    .message(&*format!("`limits.{name}` must not be below `requests.{name}`"))
}
