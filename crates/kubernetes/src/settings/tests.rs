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
    assert_eq!(keys, ["installPromOp", "installVolcano"]);
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
fn endpoints_need_a_service_and_a_certificate_or_none() {
    let with = |more: &[(&str, &str)], protected: &[(&str, &str)]| {
        let all: Vec<_> = [("enableInference", "True")].into_iter().chain(more.iter().copied()).collect();
        let checked = check(&raw(&all), &raw(protected));
        checked.map(|checked| checked.settings).map_err(|all| all.into_iter().map(|one| one.key).collect::<Vec<_>>())
    };
    let keys = ["inferenceRouterServiceType", "sslSecret"].map(str::to_owned).to_vec();
    assert_eq!(with(&[], &[]), Err(keys));
    let port = ("inferenceRouterServiceType", "NodePort");
    assert_eq!(with(&[port, ("sslSecret", "tls")], &[]), Err(vec!["sslCname".to_owned()]));
    assert_eq!(
        with(&[port, ("sslCname", "a.b")], &[("sslCertPemFile", "pem")]),
        Err(vec!["sslCertPemFile".to_owned()])
    );
    let plain = with(&[port, ("allowInsecureConnections", "True"), ("inferenceRouterHA", "False")], &[]).unwrap();
    let expect = Inference { service: ServiceType::NodePort, routers: 1, ..Inference::default() };
    assert_eq!((plain.training, plain.inference), (false, Some(expect)));
    let balanced = [("inferenceRouterServiceType", "loadbalancer"), ("internalLoadBalancerProvider", "Azure")];
    let secret = with(&[balanced[0], balanced[1], ("sslSecret", "tls"), ("sslCname", "a.b")], &[]).unwrap();
    let certificate = Certificate::Secret("tls".into());
    let expect = Inference { internal: true, routers: 3, certificate, host: "a.b".into(), ..Inference::default() };
    assert_eq!(secret.inference, Some(expect));
    let files = [("sslCertPemFile", "pem"), ("sslKeyPemFile", "pem")];
    let protected = with(&[port, ("sslCname", "a.b")], &files).unwrap();
    assert_eq!(protected.inference.as_ref().map(|one| one.certificate.clone()), Some(Certificate::Protected));
    // The operator is not shown what is protected, and comes to the same.
    let plain = raw(&[("enableInference", "True"), port, ("sslCname", "a.b")]);
    assert_eq!(installed(&plain), Ok(protected));
}

#[test]
fn both_spellings_mean_one_setting() {
    let told = bad(&[("enableTraining", "True"), ("inferenceRouterHA", "True"), ("inferenceLoadBalancerHA", "False")]);
    assert!(told[0].contains("another name of `inferenceRouterHA`"), "{told:?}");
    let protected = raw(&[("sslCertKeyFile", "pem"), ("sslCertPemFile", "pem")]);
    assert!(check(&raw(&[("enableTraining", "True")]), &protected).is_ok());
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
    assert_eq!(unsafe_while_running(&before, &after), Unsafe { running: vec!["nodeSelector"], serving: vec![] });
    assert_eq!(unsafe_while_running(&before, &before), Unsafe::default());
}

#[test]
fn what_must_not_change_under_live_endpoints_is_named() {
    let with = |more: &[(&str, &str)]| {
        let usual = [("enableInference", "True"), ("sslSecret", "tls"), ("sslCname", "a.example.org")];
        let kind = [("inferenceRouterServiceType", "loadBalancer")];
        let plain = merged(&raw(&[&usual[..], &kind[..]].concat()), &raw(more));
        check(&plain, &Raw::new()).unwrap().settings
    };
    let before = with(&[]);
    for (more, expect) in [
        (("allowInsecureConnections", "True"), vec!["allowInsecureConnections"]),
        (("inferenceRouterServiceType", "nodePort"), vec!["inferenceRouterServiceType"]),
        (("internalLoadBalancerProvider", "azure"), vec!["internalLoadBalancerProvider"]),
        (("privateEndpointILB", "True"), vec!["internalLoadBalancerProvider"]),
        (("inferenceRouterHA", "False"), vec![]),
    ] {
        let changes = unsafe_while_running(&before, &with(&[more]));
        assert_eq!(changes, Unsafe { running: vec![], serving: expect }, "{more:?}");
    }
    let first = good(&[("enableTraining", "True")]).settings;
    assert_eq!(unsafe_while_running(&first, &before).serving, Vec::<&str>::new(), "nobody was served before");
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
