// Decodes a manifest strictly: a field that Kubernetes does not know is an error. Checks that pods are numbered as pgrig expects.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	maps := map[string]bool{}
	var jobs []batch.Job
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var kind meta.TypeMeta
		if err := strict.Unmarshal(document, &kind); err != nil {
			return err
		}
		switch kind.Kind {
		case "ConfigMap":
			var config core.ConfigMap
			if err := strict.UnmarshalStrict(document, &config); err != nil {
				return err
			}
			maps[config.Name] = true
		case "Job":
			var job batch.Job
			if err := strict.UnmarshalStrict(document, &job); err != nil {
				return err
			}
			jobs = append(jobs, job)
		default:
			return fmt.Errorf("unexpected kind %q", kind.Kind)
		}
	}
	if len(jobs) != 1 {
		return fmt.Errorf("%d jobs", len(jobs))
	}
	return checkJob(jobs[0], maps)
}

func checkJob(job batch.Job, maps map[string]bool) error {
	spec := job.Spec
	if spec.CompletionMode == nil || *spec.CompletionMode != batch.IndexedCompletion {
		return errors.New("the job is not Indexed: its pods have no JOB_COMPLETION_INDEX")
	}
	if spec.Completions == nil || spec.Parallelism == nil || *spec.Completions != *spec.Parallelism {
		return errors.New("not all pods run at the same time")
	}
	for _, volume := range spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil && !maps[volume.ConfigMap.Name] {
			return fmt.Errorf("there is no ConfigMap %s", volume.ConfigMap.Name)
		}
	}
	for _, variable := range spec.Template.Spec.Containers[0].Env {
		if variable.Name == "PGRIG_PARTS" {
			if variable.Value != fmt.Sprint(*spec.Completions) {
				return fmt.Errorf("PGRIG_PARTS is %s, and the job has %d pods", variable.Value, *spec.Completions)
			}
			return nil
		}
	}
	return errors.New("PGRIG_PARTS is missing")
}
