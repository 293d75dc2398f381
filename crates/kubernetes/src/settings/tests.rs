//! Settings: what is taken, what is refused, what is said.

use super::{keys::KEYS, *};

fn raw(all: &[(&str, &str)]) -> Raw {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn good(all: &[(&str, &str)]) -> Checked {
    check(&raw(all), &Raw::new()).unwrap()
}

fn bad(all: &[(&str, &str)]) -> Vec<String> {
    check(&raw(all), &Raw::new()).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn what_people_install_with_on_azure_is_understood() {
    let Checked { settings, notices } = good(&[
        ("enableTraining", "True"),
        ("nodeSelector.pool", "gpu"),
        ("amloperator.skipResourceValidation", "true"),
        ("installPromOp", "False"),
        ("volcanoScheduler.enable", "False"),
        ("inferenceLoadBalancerHA", "False"),
    ]);
    assert!(settings.training && settings.skip_resource_validation && settings.memory_reservation);
    assert_eq!((settings.replicas, &settings.node_selector["pool"]), (1, &"gpu".to_owned()));
    let keys: Vec<&str> = notices.iter().map(|notice| notice.split('`').nth(1).unwrap()).collect();
    assert_eq!(keys, ["inferenceRouterHA", "installPromOp", "installVolcano"]);
}

#[test]
fn every_mistake_is_told_at_once() {
    let told = bad(&[
        ("enabletraining", "True"),
        ("installVolcano", "yes"),
        ("gangScheduler", "kueue"),
        ("operatorReplicas", "3"),
        ("jobNamespaces", "Team_A"),
        ("sslKeyPemFile", "k.pem"),
    ]);
    let all = told.join("\n");
    for expect in [
        "`enabletraining`: is not a setting (did you mean `enableTraining`?)",
        "`installVolcano`: `yes` will not do (write `True` or `False`)",
        "`gangScheduler`: `kueue` will not do (write one of `auto`, `volcano`, `gates`)",
        "`operatorReplicas`: `3` will not do",
        "`jobNamespaces`: `Team_A` will not do",
        "`sslKeyPemFile`: is a secret",
        "`enableTraining`: nothing is enabled",
    ] {
        assert!(all.contains(expect), "{expect}\n--\n{all}");
    }
    assert_eq!(told.len(), 7);
    assert!(!all.contains("k.pem"));
}

#[test]
fn endpoints_are_refused_with_the_reason() {
    let told = bad(&[("enableTraining", "True"), ("enableInference", "True")]);
    assert!(told[0].contains("does not run endpoints on Kubernetes yet"), "{told:?}");
    assert!(good(&[("enableTraining", "True"), ("enableInference", "False")]).notices.is_empty());
}

#[test]
fn both_spellings_mean_one_setting() {
    let told = bad(&[("enableTraining", "True"), ("inferenceRouterHA", "True"), ("inferenceLoadBalancerHA", "False")]);
    assert!(told[0].contains("another name of `inferenceRouterHA`"), "{told:?}");
    let protected = raw(&[("sslCertKeyFile", "pem"), ("sslCertPemFile", "pem")]);
    assert_eq!(check(&raw(&[("enableTraining", "True")]), &protected).unwrap().notices.len(), 2);
}

#[test]
fn an_update_merges_plain_settings_under_one_name() {
    let before = raw(&[("enableTraining", "True"), ("volcanoScheduler.enable", "True"), ("nodeSelector.a", "1")]);
    let after = merged(&before, &raw(&[("installVolcano", "False"), ("nodeSelector.b", "2")]));
    let expect = raw(&[
        ("enableTraining", "True"),
        ("installVolcano", "False"),
        ("nodeSelector.a", "1"),
        ("nodeSelector.b", "2"),
    ]);
    assert_eq!(after, expect);
}

#[test]
fn openshift_confines_jobs_unless_told_otherwise() {
    let restricted = |more: &[(&str, &str)]| {
        let all: Vec<_> = [("enableTraining", "True")].into_iter().chain(more.iter().copied()).collect();
        good(&all).settings.jobs_restricted
    };
    assert!(restricted(&[("openshift", "True")]) && restricted(&[("jobPodSecurity", "Restricted")]));
    assert!(!restricted(&[("openshift", "True"), ("jobPodSecurity", "baseline")]) && !restricted(&[]));
}

#[test]
fn what_must_not_change_under_running_jobs_is_named() {
    let before = good(&[("enableTraining", "True")]).settings;
    let after = good(&[("enableTraining", "True"), ("nodeSelector.a", "b")]).settings;
    assert_eq!(unsafe_while_running(&before, &after), ["nodeSelector"]);
    assert!(unsafe_while_running(&before, &before).is_empty());
}

#[test]
fn every_key_is_found_by_each_of_its_names_and_takes_its_default() {
    for key in KEYS.iter().filter(|key| key.kind != Kind::Labels) {
        for name in [key.name].iter().chain(key.aliases) {
            assert_eq!(keys::find(name), Some(key), "{name}");
        }
        assert!(key.default.is_empty() || key.accepts(key.default).is_ok(), "{}", key.name);
    }
    assert_eq!(pair("a=b=c").unwrap(), ("a".to_owned(), "b=c".to_owned()));
    assert!(pair("secret").is_err_and(|mistake| !mistake.to_string().contains("secret")));
}
